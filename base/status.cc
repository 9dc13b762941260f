#include "base/status.h"

#include <cstdarg>
#include <cstdio>

#include <new>

namespace hetcoll {

Status::Error Status::no_memory_{Errc::kNoMemory, "out of host memory"};

void Status::Drop::operator()(Error *error) const noexcept
{
    if (error != &no_memory_) {
        delete error;
    }
}

Status Status::out_of_memory() noexcept
{
    Status status;
    status.error_.reset(&no_memory_);
    return status;
}

Status error(Errc code, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    try {
        return Status(code, text);
    } catch (const std::bad_alloc &) {
        return Status::out_of_memory();
    }
}

} // namespace hetcoll
