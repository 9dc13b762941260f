// A call's copies between its buffers and memory of ours.
#include "engine/call/call.h"

namespace hetcoll {

void Call::start_copy(void *to, const void *from, std::size_t count, const PointerInfo &info)
{
    if (work.device != nullptr && work.device->start_copy(to, from, count).ok()) {
        work.copying = true;
    } else if (may_copy_blocking()) {
        note(gpus.contexts().copy_blocking(to, from, count, info));
    }
}

// Not where a stream waits for the call: a blocking copy would wait for the stream.
bool Call::may_copy_blocking()
{
    if (is_queued()) {
        note(error(Errc::kDriver, "a queued call has nothing to copy a buffer with: it has to be "
                                  "in the context of the stream"));
    }
    return !is_queued();
}

void Call::start_copy_out(void *to, const void *from, const PointerInfo &info)
{
    if (!has_padding()) {
        start_copy(to, from, bytes, info);
    } else if (work.device != nullptr &&
               work.device->start_copy_elements(to, from, args->count, kind()).ok()) {
        work.copying = true;
    } else if (may_copy_blocking()) {
        note(gpus.contexts().copy_elements_blocking(to, from, args->count, kind(), info));
    }
}

} // namespace hetcoll
