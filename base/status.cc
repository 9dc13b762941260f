#include "base/status.h"

#include <cstdarg>
#include <cstdio>

#include <new>

namespace hetcoll {

// Made when it is first needed, never destroyed: a component starts and ends without code of ours.
// So short a text lies in the string itself.
Status::Error *Status::no_memory() noexcept
{
    alignas(Error) static unsigned char place[sizeof(Error)];
    static Error *const made = new (place) Error{Errc::kNoMemory, "no host memory", true};
    return made;
}

void Status::Drop::operator()(Error *error) const noexcept
{
    if (!error->is_static) {
        delete error;
    }
}

Status Status::out_of_memory() noexcept
{
    Status status;
    status.error_.reset(no_memory());
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
