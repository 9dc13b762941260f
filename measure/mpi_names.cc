#include "measure/mpi_names.h"

#include "include/hetcoll_types.h"

#include <array>

namespace hetcoll {

struct MpiNames::Made {
    hetcoll_types types;
};

MpiNames::MpiNames() : made_(std::make_unique<Made>()) { hetcoll_types_create(&made_->types); }
MpiNames::~MpiNames() { hetcoll_types_free(&made_->types); }

namespace {

// An MPI without Fortran has a REAL of no size, and pairs of it that no operation takes.
MPI_Datatype if_any(MPI_Datatype part, MPI_Datatype pair)
{
    int bytes = 0;
    MPI_Type_size(part, &bytes);
    return bytes > 0 ? pair : MPI_DATATYPE_NULL;
}

} // namespace

MPI_Datatype MpiNames::datatype(ElementKind kind) const
{
    switch (kind) {
    case ElementKind::kInt8: return MPI_INT8_T;
    case ElementKind::kUint8: return MPI_UINT8_T;
    case ElementKind::kInt16: return MPI_INT16_T;
    case ElementKind::kUint16: return MPI_UINT16_T;
    case ElementKind::kInt32: return MPI_INT32_T;
    case ElementKind::kUint32: return MPI_UINT32_T;
    case ElementKind::kInt64: return MPI_INT64_T;
    case ElementKind::kUint64: return MPI_UINT64_T;
    case ElementKind::kFloat16: return made_->types.float16;
    case ElementKind::kBfloat16: return made_->types.bfloat16;
    case ElementKind::kFloat8E4m3: return made_->types.float8_e4m3;
    case ElementKind::kFloat8E5m2: return made_->types.float8_e5m2;
    case ElementKind::kFloat32: return MPI_FLOAT;
    case ElementKind::kFloat64: return MPI_DOUBLE;
    case ElementKind::kComplex64: return MPI_C_FLOAT_COMPLEX;
    case ElementKind::kComplex128: return MPI_C_DOUBLE_COMPLEX;
    case ElementKind::kBool: return MPI_C_BOOL;
    case ElementKind::kByte: return MPI_BYTE;
    case ElementKind::kInt16Int32: return MPI_SHORT_INT;
    case ElementKind::kInt32Int32: return MPI_2INT;
    case ElementKind::kInt64Int32: return MPI_LONG_INT;
    case ElementKind::kFloat32Int32: return MPI_FLOAT_INT;
    case ElementKind::kFloat64Int32: return MPI_DOUBLE_INT;
    case ElementKind::kFloat32x2: return if_any(MPI_REAL, MPI_2REAL);
    case ElementKind::kFloat64x2: return if_any(MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION);
    }
    return MPI_DATATYPE_NULL;
}

MPI_Op MpiNames::op(ReduceOp op, ElementKind kind) const
{
    if (static_cast<int>(op) >= kMpiOpCount) {
        return MPI_OP_NULL;
    }
    if (kind == ElementKind::kFloat16 || kind == ElementKind::kBfloat16) {
        const hetcoll_types &t = made_->types;
        const std::array<MPI_Op, 4> half = {t.float16_max, t.float16_min, t.float16_sum,
                                            t.float16_prod};
        const std::array<MPI_Op, 4> brain = {t.bfloat16_max, t.bfloat16_min, t.bfloat16_sum,
                                             t.bfloat16_prod};
        return (kind == ElementKind::kFloat16 ? half : brain)[static_cast<std::size_t>(op)];
    }
    if (is_float8(kind)) {
        const hetcoll_types &t = made_->types;
        const std::array<MPI_Op, 3> e4m3 = {t.float8_e4m3_max, t.float8_e4m3_min,
                                            t.float8_e4m3_sum};
        const std::array<MPI_Op, 3> e5m2 = {t.float8_e5m2_max, t.float8_e5m2_min,
                                            t.float8_e5m2_sum};
        return (kind == ElementKind::kFloat8E4m3 ? e4m3 : e5m2)[static_cast<std::size_t>(op)];
    }
    switch (op) {
    case ReduceOp::kMax: return MPI_MAX;
    case ReduceOp::kMin: return MPI_MIN;
    case ReduceOp::kSum: return MPI_SUM;
    case ReduceOp::kProd: return MPI_PROD;
    case ReduceOp::kLand: return MPI_LAND;
    case ReduceOp::kBand: return MPI_BAND;
    case ReduceOp::kLor: return MPI_LOR;
    case ReduceOp::kBor: return MPI_BOR;
    case ReduceOp::kLxor: return MPI_LXOR;
    case ReduceOp::kBxor: return MPI_BXOR;
    case ReduceOp::kMaxloc: return MPI_MAXLOC;
    case ReduceOp::kMinloc: return MPI_MINLOC;
    default: return MPI_OP_NULL;
    }
    return MPI_OP_NULL;
}

} // namespace hetcoll
