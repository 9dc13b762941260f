// One thread waits until the host has stored a number, for streams whose driver cannot. The host
// stores it after all that the call did was complete, so later work of the stream sees that: the
// fence behind the loop orders it, and the end of a kernel comes before the next work of its
// stream.
#pragma once

#include "cuda_kernels/compiler.h"

#include <cstdint>
#if !HETCOLL_ON_GPU
#include <unistd.h>
#endif

namespace hetcoll {

// Until *flag is `value` or later, counted round 2^32.
HETCOLL_HD void wait(const std::uint32_t *flag, std::uint32_t value)
{
#if HETCOLL_ON_GPU
    while (static_cast<std::int32_t>(*static_cast<const volatile std::uint32_t *>(flag) - value) <
           0) {
#if __CUDA_ARCH__ >= 700
        __nanosleep(200);
#endif
    }
    __threadfence_system();
#else
    while (static_cast<std::int32_t>(__atomic_load_n(flag, __ATOMIC_ACQUIRE) - value) < 0) {
        usleep(50);
    }
#endif
}

} // namespace hetcoll
