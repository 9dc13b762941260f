// Vectors of 8-bit floats as floats, and back: thread `thread` of `threads` does its share. Aligned
// to their elements.
#pragma once

#include "cuda_kernels/numbers.h"

#include <cstddef>

namespace hetcoll {

template <class T> HETCOLL_HD void widen_as_thread(float *dst, const T *src, std::size_t count,
                                                   std::size_t thread, std::size_t threads)
{
    for (std::size_t i = thread; i < count; i += threads) {
        dst[i] = widen(src[i]);
    }
}

template <class T> HETCOLL_HD void narrow_as_thread(T *dst, const float *src, std::size_t count,
                                                    std::size_t thread, std::size_t threads)
{
    for (std::size_t i = thread; i < count; i += threads) {
        narrow(src[i], dst[i]);
    }
}

} // namespace hetcoll
