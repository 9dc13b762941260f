// Each rank's input to a reduction, and the result that must come out: every rank knows every
// rank's input from a formula and computes the result on its own, element by element, in plain C++
// that shares nothing with the kernels. No MPI, no CUDA.
#pragma once

#include "base/element.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hetcoll {

enum class Values : std::uint8_t {
    kExact,  // small values: the result is exact in the element kind, whatever the order of
             // reduction
    kRandom, // integers of all bits (sums wrap), floating point within the bound of rounding errors
};

struct Pattern {
    ElementKind kind;
    ReduceOp op; // Requires is_defined(op, kind), one that MPI names
    Values values = Values::kExact;
    std::uint32_t seed = 0;
};

// Writes elements [0, count) of what `rank` contributes.
void fill_input(const Pattern &pattern, int rank, std::size_t count, void *out);

struct Mismatch {
    std::size_t wrong = 0; // number of elements
    std::size_t first = 0; // index of the first of them
};

// Compares with the reduction over the inputs of ranks [0, ranks).
[[nodiscard]] Mismatch compare_result(const Pattern &pattern, int ranks, std::size_t count,
                                      const void *result);

// Equal for equal elements; ignores the padding inside pairs.
[[nodiscard]] std::uint64_t checksum(ElementKind kind, std::size_t count, const void *data);

// By the names of base/element.h, and "float", "double", "half", "int", "char" as other benchmarks
// say.
[[nodiscard]] std::optional<ElementKind> find_element(std::string_view name) noexcept;
[[nodiscard]] std::optional<ReduceOp> find_op(std::string_view name) noexcept;

} // namespace hetcoll
