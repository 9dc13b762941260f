// The results that kernels should give, computed another way: wider integers, __float128, halves
// taken apart by hand. Also the operands to try them on.
#pragma once

#include "base/element.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll::test {

using Bytes = std::vector<unsigned char>;

// *dst = op(*a, *b), one element at any address. Requires is_defined(op, kind).
void reference_combine(ReduceOp op, ElementKind kind, void *dst, const void *a, const void *b);

// The left fold of `inputs`, element by element; of kSumOnce in float, rounded at the end.
Bytes reference_fold(ReduceOp op, ElementKind kind, const std::vector<Bytes> &inputs);

// Index of the first element that differs, padding apart, or -1.
long first_difference(ElementKind kind, const Bytes &a, const Bytes &b);

// The bytes of element i, for a failure message.
std::string show_element(ElementKind kind, const Bytes &bytes, long i);

// Random operands: ordinary numbers, equal ones, and every special one (NaN, infinity, -0,
// subnormal, largest, smallest).
Bytes random_elements(ElementKind kind, std::size_t count, std::uint64_t seed);

// Every pair for which MPI (or hetcoll, for the 16-bit floats) defines the operation.
std::vector<std::pair<ReduceOp, ElementKind>> defined_reductions();

} // namespace hetcoll::test
