// The bodies of the conversions between floats and fixed-point numbers: thread `thread` of
// `threads` does its share, element by element, so that dst may be src.
#pragma once

#include "cuda_kernels/compiler.h"
#include "cuda_kernels/fixed_point.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace hetcoll {

template <class Real> using FixedOf =
    std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;

// To even on a tie.
HETCOLL_HD float nearest(float x) { return rintf(x); }
HETCOLL_HD double nearest(double x) { return rint(x); }

// Scaling by a power of two is exact, and so is the comparison; no NaN passes it.
template <class Real>
HETCOLL_HD FixedOf<Real> to_fixed(Real value, Real scale, Real limit, bool *in_range)
{
    const Real scaled = value * scale;
    const bool fits = scaled <= limit && scaled >= -limit;
    *in_range = *in_range && fits;
    return static_cast<FixedOf<Real>>(fits ? nearest(scaled) : Real{0});
}

// Loads from any address: GPUs load whole elements from aligned addresses only.
template <class T> HETCOLL_HD T load_at(const unsigned char *from, bool aligned)
{
    T value{};
    if (aligned) {
        value = *reinterpret_cast<const T *>(from);
    } else {
        unsigned char bytes[sizeof(T)];
        for (unsigned i = 0; i < sizeof(T); ++i) {
            bytes[i] = from[i];
        }
        std::memcpy(&value, bytes, sizeof value);
    }
    return value;
}
template <class T> HETCOLL_HD void store_at(unsigned char *to, T value, bool aligned)
{
    if (aligned) {
        *reinterpret_cast<T *>(to) = value;
    } else {
        unsigned char bytes[sizeof(T)];
        std::memcpy(bytes, &value, sizeof value);
        for (unsigned i = 0; i < sizeof(T); ++i) {
            to[i] = bytes[i];
        }
    }
}

template <class From, class To, class Convert>
HETCOLL_HD void convert_as_thread(void *dst, const void *src, std::size_t count, std::size_t thread,
                                  std::size_t threads, Convert convert)
{
    auto *const to = static_cast<unsigned char *>(dst);
    const auto *const from = static_cast<const unsigned char *>(src);
    const bool aligned =
        (reinterpret_cast<std::uintptr_t>(dst) | reinterpret_cast<std::uintptr_t>(src)) %
            sizeof(To) ==
        0;
    for (std::size_t i = thread; i < count; i += threads) {
        store_at<To>(to + i * sizeof(To), convert(load_at<From>(from + i * sizeof(From), aligned)),
                     aligned);
    }
}

// False if an element of this thread is out of range.
template <class Real> HETCOLL_HD bool to_fixed_as_thread(void *dst, const void *src,
                                                         std::size_t count, const FixedPoint &how,
                                                         std::size_t thread, std::size_t threads)
{
    const Real scale = static_cast<Real>(how.scale), limit = static_cast<Real>(how.limit);
    bool in_range = true;
    convert_as_thread<Real, FixedOf<Real>>(dst, src, count, thread, threads, [&](Real value) {
        return to_fixed<Real>(value, scale, limit, &in_range);
    });
    return in_range;
}

template <class Real> HETCOLL_HD void from_fixed_as_thread(void *dst, const void *src,
                                                           std::size_t count, const FixedPoint &how,
                                                           std::size_t thread, std::size_t threads)
{
    const Real unit = static_cast<Real>(1 / how.scale);
    convert_as_thread<FixedOf<Real>, Real>(
        dst, src, count, thread, threads,
        [=](FixedOf<Real> value) { return static_cast<Real>(value) * unit; });
}

} // namespace hetcoll
