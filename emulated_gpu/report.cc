#include "emulated_gpu/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace hetcoll::emulated_gpu {
namespace {

constinit std::atomic<bool> silent{false};

void write_all(int fd, const char *text, std::size_t bytes)
{
    while (bytes > 0) {
        const ssize_t written = write(fd, text, bytes);
        if (written <= 0) {
            return; // nowhere to complain
        }
        text += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

std::string file_name(const char *pattern)
{
    std::string name = pattern;
    if (const auto at = name.find("%p"); at != std::string::npos) {
        name.replace(at, 2, std::to_string(getpid()));
    }
    return name;
}

} // namespace

void say(const char *format, ...)
{
    if (silent.load(std::memory_order_relaxed)) {
        return;
    }
    char line[1024];
    int length =
        std::snprintf(line, sizeof line, "[emulated GPU, pid %d] ", static_cast<int>(getpid()));
    std::va_list arguments;
    va_start(arguments, format);
    length += std::vsnprintf(line + length, sizeof line - static_cast<std::size_t>(length) - 1,
                             format, arguments);
    va_end(arguments);
    length = std::min(length, static_cast<int>(sizeof line) - 2);
    line[length++] = '\n';
    write_all(STDERR_FILENO, line, static_cast<std::size_t>(length));
}

void say_nothing() { silent.store(true); }

std::uint64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
           static_cast<std::uint64_t>(now.tv_nsec);
}

void publish(bool to_stderr, const char *file_variable, const std::string &text)
{
    if (to_stderr) {
        write_all(STDERR_FILENO, text.data(), text.size());
    }
    const char *pattern = std::getenv(file_variable);
    if (pattern == nullptr || *pattern == '\0') {
        return;
    }
    const std::string name = file_name(pattern);
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        say("cannot write %s of %s: %m", name.c_str(), file_variable);
        return;
    }
    write_all(fd, text.data(), text.size());
    close(fd);
}

} // namespace hetcoll::emulated_gpu
