// Vectors of 8-bit floats as floats, and back: lane `lane` of `lanes` does its share. Aligned to
// their elements.
#pragma once

#include "cuda_kernels/numbers.h"

#include <cstddef>

namespace hetcoll {

template <class T> HETCOLL_HD void widen_lane(float *dst, const T *src, std::size_t count,
                                              std::size_t lane, std::size_t lanes)
{
    for (std::size_t i = lane; i < count; i += lanes) {
        dst[i] = widen(src[i]);
    }
}

template <class T> HETCOLL_HD void narrow_lane(T *dst, const float *src, std::size_t count,
                                               std::size_t lane, std::size_t lanes)
{
    for (std::size_t i = lane; i < count; i += lanes) {
        narrow(src[i], dst[i]);
    }
}

} // namespace hetcoll
