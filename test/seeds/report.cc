#include "test/seeds/report.h"

#include "test/unit/engine_process.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>

namespace hetcoll::test {
namespace {

bool everything = false;

} // namespace

void say_everything()
{
    everything = true;
    std::setvbuf(stdout, nullptr, _IOLBF, 0); // also of a seed that hangs
}

bool says_everything() { return everything; }

void say(const char *format, ...)
{
    if (!everything) {
        return;
    }
    std::va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
}

void fail(const char *format, ...)
{
    std::va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
    if (everything) {
        print_log();
    }
    std::fflush(stdout);
    _exit(1);
}

void print_log()
{
    for (const std::string &line : take_log()) {
        std::printf("log: %s\n", line.c_str());
    }
}

} // namespace hetcoll::test
