// The host build of the conversions, and what the driver is told about the kernels.
#include "cuda_kernels/fixed_point.h"

#include "base/float_control.h"
#include "cuda_kernels/fixed_point.cuh"

namespace hetcoll {
namespace {

// The largest Real that is at most `bound`.
template <class Real> double floor_of(std::int64_t bound)
{
    Real real = static_cast<Real>(bound);
    if (static_cast<long double>(real) > static_cast<long double>(bound)) {
        real = std::nextafter(real, Real{0});
    }
    return static_cast<double>(real);
}

} // namespace

extern "C" const unsigned char hetcoll_fixed_point_image[]; // kernel_image.S

const void *fixed_point_image() noexcept { return hetcoll_fixed_point_image; }

FixedPoint fixed_point(ElementKind kind, int bits, int ranks) noexcept
{
    const DefaultFloats control;
    const double scale = std::ldexp(1.0, bits);
    if (kind == ElementKind::kFloat32) {
        return {scale, floor_of<float>(INT32_MAX / ranks)};
    }
    return {scale, floor_of<double>(INT64_MAX / ranks)};
}

const char *to_fixed_kernel_name(ElementKind kind) noexcept
{
    return kind == ElementKind::kFloat32 ? "hetcoll_to_fixed_float32" : "hetcoll_to_fixed_float64";
}

const char *from_fixed_kernel_name(ElementKind kind) noexcept
{
    return kind == ElementKind::kFloat32 ? "hetcoll_from_fixed_float32"
                                         : "hetcoll_from_fixed_float64";
}

bool to_fixed(ElementKind kind, void *dst, const void *src, std::size_t count,
              const FixedPoint &how) noexcept
{
    const DefaultFloats control;
    return kind == ElementKind::kFloat32 ? to_fixed_as_thread<float>(dst, src, count, how, 0, 1)
                                         : to_fixed_as_thread<double>(dst, src, count, how, 0, 1);
}

void from_fixed(ElementKind kind, void *dst, const void *src, std::size_t count,
                const FixedPoint &how) noexcept
{
    const DefaultFloats control;
    if (kind == ElementKind::kFloat32) {
        from_fixed_as_thread<float>(dst, src, count, how, 0, 1);
    } else {
        from_fixed_as_thread<double>(dst, src, count, how, 0, 1);
    }
}

} // namespace hetcoll
