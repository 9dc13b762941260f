// The element kinds and operations that hetcoll reduces itself. They are rank-invariant facts of a
// call: handles of MPI types and ops differ between ranks, these do not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hetcoll {

enum class ElementKind : std::uint8_t {
    kInt8,
    kUint8,
    kInt16,
    kUint16,
    kInt32,
    kUint32,
    kInt64,
    kUint64,
    kFloat16,
    kBfloat16,
    kFloat32,
    kFloat64,
    kComplex64,  // two floats
    kComplex128, // two doubles
    kBool,       // C _Bool and C++ bool, one byte
    kByte,       // MPI_BYTE: bitwise operations only
    // Value and index pairs of MPI_MAXLOC and MPI_MINLOC, laid out as the C structs that MPI
    // defines.
    kInt16Int32,   // MPI_SHORT_INT
    kInt32Int32,   // MPI_2INT, MPI_2INTEGER
    kInt64Int32,   // MPI_LONG_INT where long has 64 bits
    kFloat32Int32, // MPI_FLOAT_INT
    kFloat64Int32, // MPI_DOUBLE_INT
    kFloat32x2,    // MPI_2REAL
    kFloat64x2,    // MPI_2DOUBLE_PRECISION
    // The OCP 8-bit floating point formats: four and five bits of exponent.
    kFloat8E4m3,
    kFloat8E5m2,
};
inline constexpr int kElementKindCount = static_cast<int>(ElementKind::kFloat8E5m2) + 1;

enum class ReduceOp : std::uint8_t {
    kMax,
    kMin,
    kSum,
    kProd,
    kLand,
    kBand,
    kLor,
    kBor,
    kLxor,
    kBxor,
    kMaxloc,
    kMinloc,
    // The rules of std::max and std::min, for half and bfloat16; MPI does not name these two. The
    // first operand stays unless the second is larger (smaller), even for zeros and NaNs.
    kMaxFirst,
    kMinFirst,
    // The sum of half, bfloat16 and the 8-bit floats, kept in float while one kernel, or one
    // processor, adds several numbers, and rounded once. For two numbers it is kSum.
    kSumOnce,
};
inline constexpr int kReduceOpCount = static_cast<int>(ReduceOp::kSumOnce) + 1;
inline constexpr int kMpiOpCount = static_cast<int>(ReduceOp::kMaxFirst); // those that MPI names

[[nodiscard]] constexpr bool is_float8(ElementKind kind) noexcept
{
    return kind == ElementKind::kFloat8E4m3 || kind == ElementKind::kFloat8E5m2;
}

// Distance between two elements of an array: sizeof the C type, padding included.
[[nodiscard]] std::size_t element_bytes(ElementKind kind) noexcept;

// The operation on two operands, by which one number at a time is folded in.
[[nodiscard]] constexpr ReduceOp by_element(ReduceOp op) noexcept
{
    return op == ReduceOp::kSumOnce ? ReduceOp::kSum : op;
}

// True if MPI 4.0 section 6.9.2 defines op on kind. For half and bfloat16: SUM, PROD, MIN, MAX, and
// the three above that MPI does not name. For 8-bit floats: SUM, the one rounded once, MIN, MAX.
[[nodiscard]] bool is_defined(ReduceOp op, ElementKind kind) noexcept;

// True if the bits of a reduction depend on the order and grouping in which it is computed.
// Requires is_defined(op, kind).
[[nodiscard]] bool depends_on_order(ReduceOp op, ElementKind kind) noexcept;

// "float32", "sum": the names that kernels, the tuning table and the tools use.
[[nodiscard]] const char *element_name(ElementKind kind) noexcept;
[[nodiscard]] const char *op_name(ReduceOp op) noexcept;

} // namespace hetcoll
