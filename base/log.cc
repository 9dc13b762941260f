#include "base/log.h"

#include <cstdarg>
#include <cstdio>

namespace hetcoll {

void log(const Log &to, int level, const char *format, ...)
{
    if (!to.enabled(level)) {
        return;
    }
    char line[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(line, sizeof line, format, args);
    va_end(args);
    to.write(level, line);
}

} // namespace hetcoll
