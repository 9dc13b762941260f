// Floats as fixed-point numbers: their sum is a sum of integers, which has the same bits whatever
// the order of the additions. A float becomes an int32 and a double an int64, in the same place.
#pragma once

#include "base/element.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

inline constexpr int kMostFixedPointBits = 60;

// An argument of the kernels, without padding.
struct FixedPoint {
    double scale; // 2^bits
    double limit; // largest magnitude of a scaled element: `ranks` of them fit the integer
};

[[nodiscard]] constexpr bool has_fixed_point(ElementKind kind) noexcept
{
    return kind == ElementKind::kFloat32 || kind == ElementKind::kFloat64;
}
// Require has_fixed_point(kind), 1 <= bits <= kMostFixedPointBits, 1 <= ranks.
[[nodiscard]] constexpr ElementKind integer_of(ElementKind kind) noexcept
{
    return kind == ElementKind::kFloat32 ? ElementKind::kInt32 : ElementKind::kInt64;
}
[[nodiscard]] FixedPoint fixed_point(ElementKind kind, int bits, int ranks) noexcept;

// Names of the kernels, which take (void *dst, const void *src, size_t count, FixedPoint how,
// uint32_t *out_of_range, Signal done); the way back takes no out_of_range.
[[nodiscard]] const char *to_fixed_kernel_name(ElementKind kind) noexcept;
[[nodiscard]] const char *from_fixed_kernel_name(ElementKind kind) noexcept;
// The fatbin with these kernels.
[[nodiscard]] const void *fixed_point_image() noexcept;

// The host build, with the same bits. dst may be src; any alignment. Each element is scaled and
// rounded to the nearest integer, to even on a tie. False if some element is not a number or beyond
// the limit; it counts as 0.
[[nodiscard]] bool to_fixed(ElementKind kind, void *dst, const void *src, std::size_t count,
                            const FixedPoint &how) noexcept;
void from_fixed(ElementKind kind, void *dst, const void *src, std::size_t count,
                const FixedPoint &how) noexcept;

} // namespace hetcoll
