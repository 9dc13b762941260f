// Which reductions have code of their own, for nvcc, for the host build and for the table of names.
// Kinds that are not listed share the code of another: code_kind() says whose.
#pragma once

#include "base/element.h"
#include "cuda_kernels/numbers.h"

// X(Op, op, Kind, kind): the operation is struct Op, ReduceOp::k<Op> and "op", the element type
// element::Kind, ElementKind::k<Kind> and "kind".
// clang-format off
#define HETCOLL_FOR_EACH_WIDTH(X, Op, op)                                                          \
    X(Op, op, Uint8, uint8) X(Op, op, Uint16, uint16) X(Op, op, Uint32, uint32)                    \
    X(Op, op, Uint64, uint64)
#define HETCOLL_FOR_EACH_REAL(X, Op, op)                                                           \
    X(Op, op, Float16, float16) X(Op, op, Bfloat16, bfloat16) X(Op, op, Float32, float32)          \
    X(Op, op, Float64, float64)
#define HETCOLL_FOR_EACH_SMALL_REAL(X, Op, op)                                                     \
    X(Op, op, Float16, float16) X(Op, op, Bfloat16, bfloat16)
#define HETCOLL_FOR_EACH_FLOAT8(X, Op, op)                                                         \
    X(Op, op, Float8E4m3, float8_e4m3) X(Op, op, Float8E5m2, float8_e5m2)
#define HETCOLL_FOR_EACH_ORDERED(X, Op, op)                                                        \
    HETCOLL_FOR_EACH_WIDTH(X, Op, op) HETCOLL_FOR_EACH_REAL(X, Op, op)                             \
    HETCOLL_FOR_EACH_FLOAT8(X, Op, op)                                                             \
    X(Op, op, Int8, int8) X(Op, op, Int16, int16) X(Op, op, Int32, int32) X(Op, op, Int64, int64)
#define HETCOLL_FOR_EACH_ARITHMETIC(X, Op, op)                                                     \
    HETCOLL_FOR_EACH_WIDTH(X, Op, op) HETCOLL_FOR_EACH_REAL(X, Op, op)                             \
    X(Op, op, Complex64, complex64) X(Op, op, Complex128, complex128)
#define HETCOLL_FOR_EACH_LOCATED(X, Op, op)                                                        \
    X(Op, op, Int16Int32, int16_int32) X(Op, op, Int32Int32, int32_int32)                          \
    X(Op, op, Int64Int32, int64_int32) X(Op, op, Float32Int32, float32_int32)                      \
    X(Op, op, Float64Int32, float64_int32) X(Op, op, Float32x2, float32x2)                         \
    X(Op, op, Float64x2, float64x2)
#define HETCOLL_FOR_EACH_REDUCTION(X)                                                              \
    HETCOLL_FOR_EACH_ORDERED(X, Max, max) HETCOLL_FOR_EACH_ORDERED(X, Min, min)                    \
    HETCOLL_FOR_EACH_ARITHMETIC(X, Sum, sum) HETCOLL_FOR_EACH_ARITHMETIC(X, Prod, prod)            \
    HETCOLL_FOR_EACH_FLOAT8(X, Sum, sum)                                                           \
    HETCOLL_FOR_EACH_WIDTH(X, Land, land) HETCOLL_FOR_EACH_WIDTH(X, Band, band)                    \
    HETCOLL_FOR_EACH_WIDTH(X, Lor, lor) HETCOLL_FOR_EACH_WIDTH(X, Bor, bor)                        \
    HETCOLL_FOR_EACH_WIDTH(X, Lxor, lxor) HETCOLL_FOR_EACH_WIDTH(X, Bxor, bxor)                    \
    HETCOLL_FOR_EACH_LOCATED(X, Maxloc, maxloc) HETCOLL_FOR_EACH_LOCATED(X, Minloc, minloc)        \
    HETCOLL_FOR_EACH_SMALL_REAL(X, MaxFirst, max_first)                                            \
    HETCOLL_FOR_EACH_SMALL_REAL(X, MinFirst, min_first)
// Kernels of many inputs alone: of two inputs these are the ones above.
#define HETCOLL_FOR_EACH_FOLD_ALONE(X)                                                             \
    HETCOLL_FOR_EACH_SMALL_REAL(X, SumOnce, sum_once) HETCOLL_FOR_EACH_FLOAT8(X, SumOnce, sum_once)
// X(Kind, kind): what is made floats of, and of floats again.
#define HETCOLL_FOR_EACH_WIDENED(X) X(Float8E4m3, float8_e4m3) X(Float8E5m2, float8_e5m2)
// clang-format on

namespace hetcoll {

namespace element {
using Int8 = std::int8_t;
using Uint8 = std::uint8_t;
using Int16 = std::int16_t;
using Uint16 = std::uint16_t;
using Int32 = std::int32_t;
using Uint32 = std::uint32_t;
using Int64 = std::int64_t;
using Uint64 = std::uint64_t;
using Float16 = Half;
using Bfloat16 = hetcoll::Bfloat16;
using Float8E4m3 = hetcoll::Float8E4m3;
using Float8E5m2 = hetcoll::Float8E5m2;
using Float32 = float;
using Float64 = double;
using Complex64 = Complex<float>;
using Complex128 = Complex<double>;
using Int16Int32 = Located<std::int16_t, std::int32_t>;
using Int32Int32 = Located<std::int32_t, std::int32_t>;
using Int64Int32 = Located<std::int64_t, std::int32_t>;
using Float32Int32 = Located<float, std::int32_t>;
using Float64Int32 = Located<double, std::int32_t>;
using Float32x2 = Located<float, float>;
using Float64x2 = Located<double, double>;
} // namespace element

// The kind whose code serves `op` on `kind`: the sign matters only to MAX and MIN, and a bool or a
// byte is combined as uint8 is.
constexpr ElementKind code_kind(ReduceOp op, ElementKind kind)
{
    if (kind == ElementKind::kBool || kind == ElementKind::kByte) {
        return ElementKind::kUint8;
    }
    const bool ordered = op == ReduceOp::kMax || op == ReduceOp::kMin;
    switch (kind) {
    case ElementKind::kInt8: return ordered ? kind : ElementKind::kUint8;
    case ElementKind::kInt16: return ordered ? kind : ElementKind::kUint16;
    case ElementKind::kInt32: return ordered ? kind : ElementKind::kUint32;
    case ElementKind::kInt64: return ordered ? kind : ElementKind::kUint64;
    default: return kind;
    }
}

} // namespace hetcoll
