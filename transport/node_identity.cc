#include "transport/node_identity.h"

#include "base/hash.h"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace hetcoll {
namespace {

// The content of a small file of /proc; empty, with errno set, if it cannot be read.
std::string read_file(const char *path)
{
    std::string text(1024, '\0');
    std::FILE *const file = std::fopen(path, "re");
    if (file == nullptr) {
        return {};
    }
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
}

// What the link says, as "pid:[4026531836]", or that there is no link: old kernels lack some.
std::string namespace_name(const char *path)
{
    char name[64];
    const ssize_t length = readlink(path, name, sizeof name);
    return length > 0 ? std::string(name, static_cast<std::size_t>(length)) : "none";
}

} // namespace

Result<std::uint64_t> process_start_time(std::int32_t pid)
{
    char path[48];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const std::string text = read_file(path);
    // Field 2 is the program's name in parentheses, which may hold anything; 22 is the time.
    std::size_t at = text.rfind(')');
    for (int field = 2; field < 22 && at != std::string::npos; ++field) {
        at = text.find(' ', at + 1);
    }
    if (at == std::string::npos) {
        return error(Errc::kUnsupported,
                     "process %d cannot be looked at in /proc (%s): it has ended, or runs in "
                     "another PID namespace, or /proc is mounted with hidepid",
                     pid, std::strerror(text.empty() ? errno : EINVAL));
    }
    return static_cast<std::uint64_t>(std::strtoull(text.c_str() + at, nullptr, 10));
}

ProcessState process_state(const ProcessIdentity &process)
{
    if (!check_alive(process).ok()) {
        return ProcessState::kGone;
    }
    const std::string text = read_file(("/proc/" + std::to_string(process.pid) + "/stat").c_str());
    const std::size_t name_end = text.rfind(')'); // the name may have any characters
    if (name_end == std::string::npos || name_end + 2 >= text.size()) {
        return ProcessState::kGone;
    }
    switch (text[name_end + 2]) {
    case 'R': return ProcessState::kRuns;
    case 'T':
    case 't': return ProcessState::kStopped;
    case 'Z':
    case 'X': return ProcessState::kDied;
    default: return ProcessState::kSleeps;
    }
}

Status check_alive(const ProcessIdentity &process)
{
    auto start_time = process_start_time(process.pid);
    if (!start_time.ok()) {
        return start_time.take_status();
    }
    if (*start_time != process.start_time) {
        return error(Errc::kInvalid,
                     "process %d is not the one that announced its memory: that one has ended",
                     process.pid);
    }
    return {};
}

Result<NodeIdentity> node_identity(const char *word)
{
    const std::string boot_id = read_file("/proc/sys/kernel/random/boot_id");
    if (boot_id.empty()) {
        return error(Errc::kUnsupported,
                     "/proc/sys/kernel/random/boot_id cannot be read (%s): hetcoll shares no "
                     "memory with other processes, mount /proc",
                     std::strerror(errno));
    }
    auto start_time = process_start_time(getpid());
    if (!start_time.ok()) {
        return start_time.take_status();
    }
    struct utsname names {};
    struct stat shm {};
    uname(&names);
    const bool has_shm = stat("/dev/shm", &shm) == 0;

    Hash machine;
    machine.add(boot_id);
    Hash host = machine;
    host.add(names.nodename);
    host.add(namespace_name("/proc/self/ns/ipc"));
    host.add(namespace_name("/proc/self/ns/pid"));
    host.add(has_shm ? static_cast<std::uint64_t>(shm.st_dev) : 0);
    host.add(word != nullptr ? word : "");
    return NodeIdentity{.process = {.host = host.value(),
                                    .start_time = *start_time,
                                    .pid = getpid(),
                                    .reserved = 0},
                        .machine = machine.value()};
}

} // namespace hetcoll
