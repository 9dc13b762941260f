/* The functions for the slots: each puts host memory in place of device memory and calls the
 * previous module's. */
#include "coll_hetcoll_collectives.h"

#include <stdlib.h>
#include <string.h>

/* Which collectives; blocking, i..., ..._init. The names are Open MPI's. */
#define HETCOLL_COLLECTIVES(X) \
    X(allgather)               \
    X(allgatherv)              \
    X(alltoall)                \
    X(alltoallv)               \
    X(alltoallw)               \
    X(bcast)                   \
    X(exscan)                  \
    X(gather)                  \
    X(gatherv)                 \
    X(reduce)                  \
    X(reduce_scatter)          \
    X(reduce_scatter_block)    \
    X(scan)                    \
    X(scatter)                 \
    X(scatterv)                \
    X(neighbor_allgather)      \
    X(neighbor_allgatherv)     \
    X(neighbor_alltoall)       \
    X(neighbor_alltoallv)      \
    X(neighbor_alltoallw)

typedef mca_coll_base_comm_coll_t slots_t;

static const slots_t *previous_slots(mca_coll_base_module_t *base, struct ompi_communicator_t *comm)
{
    const mca_coll_hetcoll_module_t *module = mca_coll_hetcoll_own_module(base, comm);
    return NULL == module || !module->stages ? NULL : &module->staged;
}

static const mca_coll_hetcoll_module_t *module_of(const slots_t *previous)
{
    const char *const staged = (const char *)previous;
    return (const mca_coll_hetcoll_module_t *)(staged -
                                               offsetof(mca_coll_hetcoll_module_t, staged));
}

#define UNPACK(...) __VA_ARGS__

/* Shared by the three kinds of a function: `call`, and where the previous functions are. */
#define HETCOLL_BEGIN(slot, data, is_reduction, kind, sides)                   \
    const slots_t *previous = previous_slots(base, comm);                      \
    if (OPAL_UNLIKELY(NULL == previous || NULL == previous->coll_##slot)) {    \
        return OMPI_ERR_NOT_AVAILABLE;                                         \
    }                                                                          \
    struct hetcoll_staged_call call = {                                        \
        .name = #slot, UNPACK sides, .reduces = (is_reduction), .comm = comm}; \
    int rc = mca_coll_hetcoll_stage(&call, mca_coll_hetcoll_data_##data, kind);
#define HETCOLL_RETURN_ERROR                 \
    if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) { \
        return rc;                           \
    }

/* The functions of one collective. `own` is what the core makes of the blocking call, if only that
 * it tells other ranks of it (see coll_hetcoll_collectives.h). `sides` sets the fields send, recv
 * and root of the call; `arguments` are those of the previous function up to the communicator. */
#define HETCOLL_STAGED(name, ...) HETCOLL_SERVED(name, MCA_COLL_HETCOLL_NOT_OURS, __VA_ARGS__)
#define HETCOLL_SERVED(name, own, data, is_reduction, parameters, sides, arguments)               \
    static int staged_##name(UNPACK parameters, struct ompi_communicator_t *comm,                 \
                             mca_coll_base_module_t *base)                                        \
    {                                                                                             \
        const int served = own;                                                                   \
        if (mca_coll_hetcoll_is_over(served)) {                                                   \
            return served;                                                                        \
        }                                                                                         \
        const enum hetcoll_staged_kind kind =                                                     \
            MCA_COLL_HETCOLL_TOGETHER == served ? HETCOLL_AGREED : HETCOLL_BLOCKING;              \
        HETCOLL_BEGIN(name, data, is_reduction, kind, sides)                                      \
        if (MCA_COLL_HETCOLL_TOGETHER == served) {                                                \
            rc = mca_coll_hetcoll_stage_together(&call, rc, base);                                \
        }                                                                                         \
        HETCOLL_RETURN_ERROR                                                                      \
        if (MCA_COLL_HETCOLL_TOLD == served) {                                                    \
            mca_coll_hetcoll_serve(module_of(previous)->told);                                    \
        }                                                                                         \
        rc = previous->coll_##name(UNPACK arguments, comm, previous->coll_##name##_module);       \
        mca_coll_hetcoll_serve(NULL);                                                             \
        return NULL == call.stage ? rc : mca_coll_hetcoll_staged_end(&call, rc);                  \
    }                                                                                             \
    static int staged_i##name(UNPACK parameters, struct ompi_communicator_t *comm,                \
                              ompi_request_t **request, mca_coll_base_module_t *base)             \
    {                                                                                             \
        HETCOLL_BEGIN(i##name, data, is_reduction, HETCOLL_NONBLOCKING, sides)                    \
        HETCOLL_RETURN_ERROR                                                                      \
        rc = previous->coll_i##name(UNPACK arguments, comm, request,                              \
                                    previous->coll_i##name##_module);                             \
        return NULL == call.stage ? rc : mca_coll_hetcoll_staged_end_request(&call, rc, request); \
    }                                                                                             \
    static int staged_##name##_init(UNPACK parameters, struct ompi_communicator_t *comm,          \
                                    struct ompi_info_t *info, ompi_request_t **request,           \
                                    mca_coll_base_module_t *base)                                 \
    {                                                                                             \
        HETCOLL_BEGIN(name##_init, data, is_reduction, HETCOLL_PERSISTENT, sides)                 \
        HETCOLL_RETURN_ERROR                                                                      \
        rc = previous->coll_##name##_init(UNPACK arguments, comm, info, request,                  \
                                          previous->coll_##name##_init_module);                   \
        return NULL == call.stage ? rc : mca_coll_hetcoll_staged_end_request(&call, rc, request); \
    }

/* Parameters, sides and arguments that several collectives have. */
typedef struct ompi_datatype_t *type_t;
typedef struct ompi_datatype_t *const *types_t;

#define SEND const void *sbuf, hetcoll_count_t scount, type_t sdtype
#define SEND_SIDE .send = {.buffer = sbuf, .count = scount, .dtype = sdtype}
#define SEND_ARGUMENTS call.send.buffer, scount, sdtype
#define SENDV const void *sbuf, hetcoll_counts_t scounts, hetcoll_disps_t sdisps, type_t sdtype
#define SENDV_SIDE                     \
    .send = {.buffer = sbuf,           \
             .layout = HETCOLL_BLOCKS, \
             .dtype = sdtype,          \
             .counts = scounts,        \
             .disps = sdisps}
#define SENDV_ARGUMENTS call.send.buffer, scounts, sdisps, sdtype

#define RECV_BUFFER ((void *)(uintptr_t)call.recv.buffer)
#define RECV void *rbuf, hetcoll_count_t rcount, type_t rdtype
#define RECV_SIDE .recv = {.buffer = rbuf, .count = rcount, .dtype = rdtype}
#define RECV_ARGUMENTS RECV_BUFFER, rcount, rdtype
#define RECVV void *rbuf, hetcoll_counts_t rcounts, hetcoll_disps_t rdisps, type_t rdtype
#define RECVV_SIDE                     \
    .recv = {.buffer = rbuf,           \
             .layout = HETCOLL_BLOCKS, \
             .dtype = rdtype,          \
             .counts = rcounts,        \
             .disps = rdisps}
#define RECVV_ARGUMENTS RECV_BUFFER, rcounts, rdisps, rdtype

#define TYPED(disps_t)                                                                       \
    const void *sbuf, hetcoll_counts_t scounts, disps_t sdisps, types_t sdtypes, void *rbuf, \
        hetcoll_counts_t rcounts, disps_t rdisps, types_t rdtypes
#define TYPED_SIDES(its_layout, places) \
    .send = {.buffer = sbuf,            \
             .layout = its_layout,      \
             .counts = scounts,         \
             .places = sdisps,          \
             .dtypes = sdtypes},        \
    .recv = {.buffer = rbuf,            \
             .layout = its_layout,      \
             .counts = rcounts,         \
             .places = rdisps,          \
             .dtypes = rdtypes}
#define TYPED_ARGUMENTS \
    call.send.buffer, scounts, sdisps, sdtypes, RECV_BUFFER, rcounts, rdisps, rdtypes

#define REDUCE \
    const void *sbuf, void *rbuf, hetcoll_count_t count, type_t dtype, struct ompi_op_t *op
#define REDUCE_SIDES                                          \
    .send = {.buffer = sbuf, .count = count, .dtype = dtype}, \
    .recv = {.buffer = rbuf, .count = count, .dtype = dtype}
#define REDUCE_ARGUMENTS call.send.buffer, RECV_BUFFER, count, dtype, op

#define IS_ROOT (ompi_comm_rank(comm) == root)

HETCOLL_SERVED(allgather,
               mca_coll_hetcoll_own_allgather(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                                              base),
               allgather, false, (SEND, RECV), (SEND_SIDE, RECV_SIDE),
               (SEND_ARGUMENTS, RECV_ARGUMENTS))
HETCOLL_SERVED(allgatherv, mca_coll_hetcoll_tell_allgatherv(rcounts, rdtype, comm, base), allgather,
               false, (SEND, RECVV), (SEND_SIDE, RECVV_SIDE), (SEND_ARGUMENTS, RECVV_ARGUMENTS))
HETCOLL_SERVED(alltoall,
               mca_coll_hetcoll_tell_data(HETCOLL_ALLTOALL, rcount, rdtype, 0, comm, base),
               alltoall, false, (SEND, RECV), (SEND_SIDE, RECV_SIDE),
               (SEND_ARGUMENTS, RECV_ARGUMENTS))
HETCOLL_SERVED(alltoallv, mca_coll_hetcoll_tell(HETCOLL_ALLTOALLV, 0, 0, comm, base), alltoall,
               false, (SENDV, RECVV), (SENDV_SIDE, RECVV_SIDE), (SENDV_ARGUMENTS, RECVV_ARGUMENTS))
HETCOLL_SERVED(alltoallw, mca_coll_hetcoll_tell(HETCOLL_ALLTOALLW, 0, 0, comm, base), alltoall,
               false, (TYPED(hetcoll_disps_t)), (TYPED_SIDES(HETCOLL_TYPED, disps)),
               (TYPED_ARGUMENTS))
HETCOLL_SERVED(bcast, mca_coll_hetcoll_own_bcast(rbuf, rcount, rdtype, root, comm, base), bcast,
               false, (void *rbuf, hetcoll_count_t rcount, type_t rdtype, int root),
               (RECV_SIDE, .root = root), (RECV_ARGUMENTS, root))
HETCOLL_SERVED(exscan, mca_coll_hetcoll_tell_scan(HETCOLL_EXSCAN, count, dtype, op, comm, base),
               exscan, true, (REDUCE), (REDUCE_SIDES), (REDUCE_ARGUMENTS))
HETCOLL_SERVED(gather,
               mca_coll_hetcoll_tell_data(HETCOLL_GATHER, IS_ROOT ? rcount : scount,
                                          IS_ROOT ? rdtype : sdtype, root, comm, base),
               gather, false, (SEND, RECV, int root), (SEND_SIDE, RECV_SIDE, .root = root),
               (SEND_ARGUMENTS, RECV_ARGUMENTS, root))
HETCOLL_SERVED(gatherv, mca_coll_hetcoll_tell(HETCOLL_GATHERV, 0, root, comm, base), gather, false,
               (SEND, RECVV, int root), (SEND_SIDE, RECVV_SIDE, .root = root),
               (SEND_ARGUMENTS, RECVV_ARGUMENTS, root))
HETCOLL_SERVED(reduce, mca_coll_hetcoll_own_reduce(sbuf, rbuf, count, dtype, op, root, comm, base),
               reduce, true, (REDUCE, int root), (REDUCE_SIDES, .root = root),
               (REDUCE_ARGUMENTS, root))
HETCOLL_SERVED(reduce_scatter,
               mca_coll_hetcoll_own_reduce_scatter(sbuf, rbuf, rcounts, dtype, op, comm, base),
               reduce_scatter, true,
               (const void *sbuf, void *rbuf, hetcoll_counts_t rcounts, type_t dtype,
                struct ompi_op_t *op),
               (.send = {.buffer = sbuf, .dtype = dtype},
                .recv = {.buffer = rbuf, .dtype = dtype, .counts = rcounts}),
               (call.send.buffer, RECV_BUFFER, rcounts, dtype, op))
HETCOLL_SERVED(reduce_scatter_block,
               mca_coll_hetcoll_own_reduce_scatter_block(sbuf, rbuf, count, dtype, op, comm, base),
               reduce_scatter_block, true, (REDUCE), (REDUCE_SIDES), (REDUCE_ARGUMENTS))
HETCOLL_SERVED(scan, mca_coll_hetcoll_tell_scan(HETCOLL_SCAN, count, dtype, op, comm, base), scan,
               true, (REDUCE), (REDUCE_SIDES), (REDUCE_ARGUMENTS))
HETCOLL_SERVED(scatter,
               mca_coll_hetcoll_tell_data(HETCOLL_SCATTER, IS_ROOT ? scount : rcount,
                                          IS_ROOT ? sdtype : rdtype, root, comm, base),
               scatter, false, (SEND, RECV, int root), (SEND_SIDE, RECV_SIDE, .root = root),
               (SEND_ARGUMENTS, RECV_ARGUMENTS, root))
HETCOLL_SERVED(scatterv, mca_coll_hetcoll_tell(HETCOLL_SCATTERV, 0, root, comm, base), scatter,
               false, (SENDV, RECV, int root), (SENDV_SIDE, RECV_SIDE, .root = root),
               (SENDV_ARGUMENTS, RECV_ARGUMENTS, root))
HETCOLL_STAGED(neighbor_allgather, neighbor_allgather, false, (SEND, RECV), (SEND_SIDE, RECV_SIDE),
               (SEND_ARGUMENTS, RECV_ARGUMENTS))
HETCOLL_STAGED(neighbor_allgatherv, neighbor_allgather, false, (SEND, RECVV),
               (SEND_SIDE, RECVV_SIDE), (SEND_ARGUMENTS, RECVV_ARGUMENTS))
HETCOLL_STAGED(neighbor_alltoall, neighbor_alltoall, false, (SEND, RECV), (SEND_SIDE, RECV_SIDE),
               (SEND_ARGUMENTS, RECV_ARGUMENTS))
HETCOLL_STAGED(neighbor_alltoallv, neighbor_alltoall, false, (SENDV, RECVV),
               (SENDV_SIDE, RECVV_SIDE), (SENDV_ARGUMENTS, RECVV_ARGUMENTS))
HETCOLL_STAGED(neighbor_alltoallw, neighbor_alltoall, false, (TYPED(hetcoll_offsets_t)),
               (TYPED_SIDES(HETCOLL_OFFSETS, offsets)), (TYPED_ARGUMENTS))

/* Has no buffer: other ranks are told of it, no more. Open MPI's takes some 1,000 instructions on
 * one of two ranks, so there are few to spare; a module that stages nothing has not offered this.
 */
static int staged_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    mca_coll_hetcoll_module_t *module = mca_coll_hetcoll_own_module(base, comm);
    if (OPAL_UNLIKELY(NULL == module)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    unsigned number;
    if (mca_coll_hetcoll_count(module, &number)) {
        mca_coll_hetcoll_serve(module->told);
        const int result = hetcoll_hand_on_barrier(module->told, number);
        if (OPAL_UNLIKELY(HETCOLL_SUCCESS != result)) {
            mca_coll_hetcoll_serve(NULL);
            return mca_coll_hetcoll_error_from_core(result);
        }
    }
    const int rc = module->staged.coll_barrier(module->comm, module->staged.coll_barrier_module);
    mca_coll_hetcoll_serve(NULL);
    return rc;
}

/* Not a collective, but a function of the module all the same; MPI_COMM_SELF's. */
static int staged_reduce_local(const void *inbuf, void *inoutbuf, hetcoll_count_t count,
                               type_t dtype, struct ompi_op_t *op, mca_coll_base_module_t *base)
{
    const slots_t *previous = previous_slots(base, &ompi_mpi_comm_self.comm);
    if (NULL == previous || NULL == previous->coll_reduce_local) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    struct hetcoll_staged_call call = {.name = "reduce_local",
                                       .send = {.buffer = inbuf, .dtype = dtype},
                                       .recv = {.buffer = inoutbuf, .count = count, .dtype = dtype},
                                       .reduces = true};
    int rc = mca_coll_hetcoll_stage(&call, mca_coll_hetcoll_data_reduce_local, HETCOLL_BLOCKING);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = previous->coll_reduce_local(call.send.buffer, RECV_BUFFER, count, dtype, op,
                                     previous->coll_reduce_local_module);
    return NULL == call.stage ? rc : mca_coll_hetcoll_staged_end(&call, rc);
}

/* ---- the slots ---- */

/* X(slot, our function) */
#define HETCOLL_THREE_SLOTS(name) \
    HETCOLL_SLOT(name)            \
    HETCOLL_SLOT(i##name)         \
    HETCOLL_SLOT(name##_init)
#define HETCOLL_ALL_SLOTS                    \
    HETCOLL_COLLECTIVES(HETCOLL_THREE_SLOTS) \
    HETCOLL_SLOT(barrier) HETCOLL_SLOT(reduce_local)

/* See coll_hetcoll_p2p.c. */
extern int MPIX_Query_cuda_support(void) __attribute__((weak));

static enum hetcoll_stage_mode stage_mode(void)
{
    const int setting = mca_coll_hetcoll_component.settings.stage;
    struct hetcoll_facts facts;
    hetcoll_process_facts(mca_coll_hetcoll_component.process, &facts);
    if (0 == facts.may_have_gpu || HETCOLL_STAGE_NEVER == setting) {
        return HETCOLL_STAGE_NOTHING;
    }
    const bool cuda_aware = NULL != MPIX_Query_cuda_support && 0 != MPIX_Query_cuda_support();
    return cuda_aware && HETCOLL_STAGE_AUTO == setting ? HETCOLL_STAGE_REDUCTIONS
                                                       : HETCOLL_STAGE_ALL;
}

void mca_coll_hetcoll_staged_offer(mca_coll_hetcoll_module_t *module)
{
    mca_coll_hetcoll_component_t *component = &mca_coll_hetcoll_component;
    if (HETCOLL_STAGE_UNDECIDED == component->stage_mode) {
        component->stage_mode = stage_mode();
    }
    if (HETCOLL_STAGE_NOTHING == component->stage_mode) {
        return;
    }
    module->stages = true;
    mca_coll_hetcoll_watch();
#define HETCOLL_SLOT(slot) module->super.coll_##slot = staged_##slot;
    HETCOLL_ALL_SLOTS
#undef HETCOLL_SLOT
}

#if !HETCOLL_MODULE_INSTALLS_ITSELF
/* Out of line: expanded for sixty slots the two macros are 15 KB of code. */
__attribute__((noinline)) static void retain(mca_coll_base_module_t *module) { OBJ_RETAIN(module); }

__attribute__((noinline)) static void release(mca_coll_base_module_t *module)
{
    if (NULL != module) {
        OBJ_RELEASE(module);
    }
}
#endif

/* See enable() in coll_hetcoll_module.c. Slots may be empty: most components have no functions for
 * neighbours. */
void mca_coll_hetcoll_staged_enable(mca_coll_hetcoll_module_t *module,
                                    struct ompi_communicator_t *comm)
{
    if (!module->stages) {
        return;
    }
#if HETCOLL_MODULE_INSTALLS_ITSELF
#define HETCOLL_KEEP_SLOT(slot) \
    MCA_COLL_INSTALL_API(comm, slot, staged_##slot, &module->super, "hetcoll");
#else
#define HETCOLL_KEEP_SLOT(slot) retain(module->staged.coll_##slot##_module);
#endif
#define HETCOLL_SLOT(slot)                                                                 \
    if (NULL == comm->c_coll->coll_##slot || NULL == comm->c_coll->coll_##slot##_module) { \
        module->super.coll_##slot = NULL;                                                  \
    } else {                                                                               \
        module->staged.coll_##slot = comm->c_coll->coll_##slot;                            \
        module->staged.coll_##slot##_module = comm->c_coll->coll_##slot##_module;          \
        HETCOLL_KEEP_SLOT(slot)                                                            \
    }
    HETCOLL_ALL_SLOTS
#undef HETCOLL_SLOT
#undef HETCOLL_KEEP_SLOT
}

#if HETCOLL_MODULE_INSTALLS_ITSELF
void mca_coll_hetcoll_staged_disable(mca_coll_hetcoll_module_t *module,
                                     struct ompi_communicator_t *comm)
{
    if (!module->stages) {
        return;
    }
#define HETCOLL_SLOT(slot)                                                    \
    if (comm->c_coll->coll_##slot##_module == &module->super &&               \
        comm->c_coll->coll_##slot == staged_##slot) {                         \
        MCA_COLL_INSTALL_API(comm, slot, module->staged.coll_##slot,          \
                             module->staged.coll_##slot##_module, "hetcoll"); \
    }                                                                         \
    module->staged.coll_##slot = NULL;
    HETCOLL_ALL_SLOTS
#undef HETCOLL_SLOT
}
#endif

void mca_coll_hetcoll_staged_release(mca_coll_hetcoll_module_t *module)
{
    if (!module->stages) {
        return;
    }
#if !HETCOLL_MODULE_INSTALLS_ITSELF
#define HETCOLL_SLOT(slot) release(module->staged.coll_##slot##_module);
    HETCOLL_ALL_SLOTS
#undef HETCOLL_SLOT
#endif
    module->stages = false;
}
