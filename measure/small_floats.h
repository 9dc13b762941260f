// Half and bfloat16 as their bits, by kind: for programs that choose the kind when they run.
#pragma once

#include "base/element.h"
#include "cuda_kernels/numbers.h"

#include <cstdint>

namespace hetcoll {

// Require one of the two. Rounded to nearest even, as the kernels do.
[[nodiscard]] inline float value_of(ElementKind kind, std::uint16_t bits)
{
    return kind == ElementKind::kFloat16 ? widen(Half{bits}) : widen(Bfloat16{bits});
}

[[nodiscard]] inline std::uint16_t bits_of(ElementKind kind, float value)
{
    Half half;
    Bfloat16 bfloat16;
    narrow(value, half);
    narrow(value, bfloat16);
    return kind == ElementKind::kFloat16 ? half.bits : bfloat16.bits;
}

} // namespace hetcoll
