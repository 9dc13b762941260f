/* From Open MPI's handles to the core's element kinds and operations. Only facts that are the same
 * on every rank go in: ranks may hold different handles for the same type. */
#include "coll_hetcoll.h"

#include "opal/datatype/opal_datatype_internal.h"

/* The core's enums, see base/element.h; hetcoll_is_reduced() knows which pairs are defined. */
enum { NOT_REDUCED = -1 };

static int kind_of_base(const ompi_datatype_t *dtype)
{
    switch (dtype->super.id) {
    case OPAL_DATATYPE_INT1: return HETCOLL_INT8;
    case OPAL_DATATYPE_UINT1: return HETCOLL_UINT8;
    case OPAL_DATATYPE_INT2: return HETCOLL_INT16;
    case OPAL_DATATYPE_UINT2: return HETCOLL_UINT16;
    case OPAL_DATATYPE_INT4: return HETCOLL_INT32;
    case OPAL_DATATYPE_UINT4: return HETCOLL_UINT32;
    case OPAL_DATATYPE_INT8: return HETCOLL_INT64;
    case OPAL_DATATYPE_UINT8: return HETCOLL_UINT64;
    case OPAL_DATATYPE_FLOAT2: return HETCOLL_FLOAT16;
    case OPAL_DATATYPE_FLOAT4: return HETCOLL_FLOAT32;
    case OPAL_DATATYPE_FLOAT8: return HETCOLL_FLOAT64;
    case OPAL_DATATYPE_FLOAT_COMPLEX: return HETCOLL_COMPLEX64;
    case OPAL_DATATYPE_DOUBLE_COMPLEX: return HETCOLL_COMPLEX128;
    case OPAL_DATATYPE_BOOL: return HETCOLL_BOOL;
#if defined(OPAL_DATATYPE_LONG)
    case OPAL_DATATYPE_LONG: return sizeof(long) == 8 ? HETCOLL_INT64 : HETCOLL_INT32;
    case OPAL_DATATYPE_UNSIGNED_LONG: return sizeof(long) == 8 ? HETCOLL_UINT64 : HETCOLL_UINT32;
#endif
    default: return NOT_REDUCED;
    }
}

/* The pairs of MPI_MAXLOC and MPI_MINLOC are predefined structures without a base type. */
static int kind_of_pair(const ompi_datatype_t *dtype)
{
    if (dtype == &ompi_mpi_float_int.dt) {
        return HETCOLL_FLOAT32_INT32;
    }
    if (dtype == &ompi_mpi_double_int.dt) {
        return HETCOLL_FLOAT64_INT32;
    }
    if (dtype == &ompi_mpi_long_int.dt) {
        return sizeof(long) == 8 ? HETCOLL_INT64_INT32 : HETCOLL_INT32_INT32;
    }
    if (dtype == &ompi_mpi_2int.dt || dtype == &ompi_mpi_2integer.dt) {
        return HETCOLL_INT32_INT32;
    }
    if (dtype == &ompi_mpi_short_int.dt) {
        return HETCOLL_INT16_INT32;
    }
    if (dtype == &ompi_mpi_2real.dt) {
        return HETCOLL_FLOAT32_FLOAT32;
    }
    if (dtype == &ompi_mpi_2dblprec.dt) {
        return HETCOLL_FLOAT64_FLOAT64;
    }
    return NOT_REDUCED;
}

static int op_of(const ompi_op_t *op)
{
    switch (op->o_f_to_c_index) {
    case OMPI_OP_BASE_FORTRAN_MAX: return HETCOLL_MAX;
    case OMPI_OP_BASE_FORTRAN_MIN: return HETCOLL_MIN;
    case OMPI_OP_BASE_FORTRAN_SUM: return HETCOLL_SUM;
    case OMPI_OP_BASE_FORTRAN_PROD: return HETCOLL_PROD;
    case OMPI_OP_BASE_FORTRAN_LAND: return HETCOLL_LAND;
    case OMPI_OP_BASE_FORTRAN_BAND: return HETCOLL_BAND;
    case OMPI_OP_BASE_FORTRAN_LOR: return HETCOLL_LOR;
    case OMPI_OP_BASE_FORTRAN_BOR: return HETCOLL_BOR;
    case OMPI_OP_BASE_FORTRAN_LXOR: return HETCOLL_LXOR;
    case OMPI_OP_BASE_FORTRAN_BXOR: return HETCOLL_BXOR;
    case OMPI_OP_BASE_FORTRAN_MAXLOC: return HETCOLL_MAXLOC;
    case OMPI_OP_BASE_FORTRAN_MINLOC: return HETCOLL_MINLOC;
    default: return NOT_REDUCED;
    }
}

/* The predefined type that a derived one is a dense array of, or NULL. */
static const ompi_datatype_t *dense_base(ompi_datatype_t *dtype, size_t count)
{
    ptrdiff_t lower_bound, extent;
    ompi_datatype_get_true_extent(dtype, &lower_bound, &extent);
    if (0 != lower_bound || !ompi_datatype_is_contiguous_memory_layout(dtype, count)) {
        return NULL;
    }
    return ompi_datatype_get_single_predefined_type_from_args(dtype);
}

static void describe_predefined_op(struct hetcoll_call *call, ompi_datatype_t *dtype,
                                   const ompi_op_t *op)
{
    const bool derived = !ompi_datatype_is_predefined(dtype);
    const ompi_datatype_t *base = derived ? dense_base(dtype, call->count) : dtype;
    const int operation = op_of(op);
    int kind = NULL == base ? NOT_REDUCED : kind_of_base(base);
    if (NOT_REDUCED == kind && !derived) { /* derived pairs may have holes */
        kind = kind_of_pair(base);
    }
    call->reason = NULL == base ? HETCOLL_REASON_LAYOUT : HETCOLL_REASON_TYPE;
    if (NOT_REDUCED == kind || NOT_REDUCED == operation || !hetcoll_is_reduced(operation, kind)) {
        return;
    }
    if (derived) {
        size_t size;
        ompi_datatype_type_size(dtype, &size);
        call->count *= size / hetcoll_element_bytes(kind);
    }
    call->kind = kind;
    call->op = operation;
}

/* A user-defined op's function, with the type that it is first used with. */
struct user_function {
    ompi_op_t *op;
    ompi_datatype_t *dtype;
};

/* As Open MPI calls it. */
static void call_function(void *context, const void *in, void *inout, int count)
{
    const struct user_function *function = context;
    MPI_Datatype dtype = function->dtype;
#if defined(OMPI_OP_FLAGS_BIGCOUNT) /* 6.0: programs of the standard ABI have handles of their own \
                                     */
    if (NULL != function->op->o_datatype_converter) {
        dtype = function->op->o_datatype_converter(dtype);
    }
#endif
    function->op->o_func.c_fn((void *)in, inout, &count, &dtype);
}

/* Written in C, and called with a count that is an int: other languages' functions are called in
 * their own way. */
static bool has_c_function(const ompi_op_t *op)
{
    unsigned others = OMPI_OP_FLAGS_FORTRAN_FUNC;
#if defined(OMPI_OP_FLAGS_CXX_FUNC)
    others |= OMPI_OP_FLAGS_CXX_FUNC;
#endif
#if defined(OMPI_OP_FLAGS_JAVA_FUNC)
    others |= OMPI_OP_FLAGS_JAVA_FUNC;
#endif
#if defined(OMPI_OP_FLAGS_BIGCOUNT)
    others |= OMPI_OP_FLAGS_BIGCOUNT;
#endif
    return 0 == (op->o_flags & others);
}

/* So many bytes and nothing between two elements. */
static bool is_dense(ompi_datatype_t *dtype, size_t count, size_t bytes)
{
    ptrdiff_t lower_bound, extent;
    ompi_datatype_get_true_extent(dtype, &lower_bound, &extent);
    return 0 == lower_bound && (ptrdiff_t)bytes == extent &&
           ompi_datatype_is_contiguous_memory_layout(dtype, count);
}

/* On elements of one byte or two: 8-bit floats, half and bfloat16. Ranks may run different
 * programs, so the op is used where all of them say that they know it. Elements with anything
 * before, between or behind them are left to the previous module, by all ranks, as they reduce the
 * same type: the function finds its data from the address of a buffer that is laid out so. */
static void describe_user_op(const mca_coll_hetcoll_module_t *module, struct hetcoll_call *call,
                             ompi_datatype_t *dtype, ompi_op_t *op)
{
    size_t size;
    int kind, operation;
    ompi_datatype_type_size(dtype, &size);
    if (0 == size || HETCOLL_USER_OP_BYTES < size || !ompi_op_is_commute(op) ||
        !is_dense(dtype, call->count, size)) {
        return;
    }
    call->user_op = (int)size;
    if (NULL == module || !module->user_ops || !has_c_function(op)) {
        return;
    }
    struct user_function function = {op, dtype};
    if (hetcoll_recognize_op(mca_coll_hetcoll_component.process, (void (*)(void))op->o_func.c_fn,
                             call_function, &function, &operation, &kind) &&
        hetcoll_element_bytes(kind) == size) {
        call->kind = kind;
        call->op = operation;
    }
}

void mca_coll_hetcoll_describe(const mca_coll_hetcoll_module_t *module, struct hetcoll_call *call,
                               size_t count, struct ompi_datatype_t *dtype, struct ompi_op_t *op)
{
    call->kind = NOT_REDUCED;
    call->user_op = 0;
    call->reason = HETCOLL_REASON_USER_OP;
    call->count = count;
    if (ompi_op_is_intrinsic(op)) {
        describe_predefined_op(call, dtype, op);
    } else {
        describe_user_op(module, call, dtype, op);
    }
    if (NOT_REDUCED != call->kind) {
        call->gap = 0;
        call->span = call->data_bytes = call->count * hetcoll_element_bytes(call->kind);
        call->dense = !hetcoll_has_padding(call->kind);
    } else {
        size_t size;
        ompi_datatype_type_size(dtype, &size);
        call->span = opal_datatype_span(&dtype->super, count, &call->gap);
        call->data_bytes = count * size;
        call->dense = call->span == call->data_bytes;
    }
}

void mca_coll_hetcoll_describe_anew(mca_coll_hetcoll_module_t *module, struct hetcoll_call *call,
                                    size_t count, struct ompi_datatype_t *dtype,
                                    struct ompi_op_t *op, bool recognizes)
{
    mca_coll_hetcoll_describe(recognizes ? module : NULL, call, count, dtype, op);
    if (0 != count && 0 <= call->kind && ompi_datatype_is_predefined(dtype) &&
        ompi_op_is_intrinsic(op)) {
        module->last.dtype = dtype;
        module->last.op = op;
        module->last.kind = call->kind;
        module->last.operation = call->op;
        module->last.dense = call->dense;
        module->last.bytes = call->span / count;
    }
}
