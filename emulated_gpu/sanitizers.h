// If the program runs under AddressSanitizer, tells it which bytes of device memory are allocated:
// host-compiled kernels built with it then report every access beyond. Else these do nothing.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(void const volatile *start,
                                                       std::size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(void const volatile *start,
                                                         std::size_t bytes);
}

namespace hetcoll::emulated_gpu {

inline void poison_for_asan(std::uintptr_t start, std::size_t bytes)
{
    if (__asan_poison_memory_region != nullptr && bytes > 0) {
        __asan_poison_memory_region(reinterpret_cast<void *>(start), bytes);
    }
}

inline void unpoison_for_asan(std::uintptr_t start, std::size_t bytes)
{
    if (__asan_unpoison_memory_region != nullptr && bytes > 0) {
        __asan_unpoison_memory_region(reinterpret_cast<void *>(start), bytes);
    }
}

} // namespace hetcoll::emulated_gpu
