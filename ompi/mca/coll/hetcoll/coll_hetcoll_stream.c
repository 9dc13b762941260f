/* Collectives in the order of a CUDA stream: the functions that include/hetcoll_stream.h finds. */
#include "coll_hetcoll_collectives.h"
#include "coll_hetcoll_request.h"

#include <stdio.h>
#include <stdlib.h>

#include "include/hetcoll_stream.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/proc.h"

#define DEFAULT_MOST_BYTES ((size_t)64 << 20)

/* The handles of a call that is not complete. */
struct handles {
    struct ompi_datatype_t *dtype; /* NULL: none are held */
    struct ompi_op_t *op;
};

/* A stream of a communicator, in the list of its module. */
struct mca_coll_hetcoll_attached {
    mca_coll_hetcoll_stepper_t stepper; /* first */
    struct mca_coll_hetcoll_attached *next;
    mca_coll_hetcoll_module_t *module;
    hetcoll_stream_t stream;
    bool prepared_only; /* other calls synchronise */
    bool told;          /* that one did */
    struct hetcoll_calls *calls;
    struct handles handles[HETCOLL_STREAM_CALLS];
};
typedef struct mca_coll_hetcoll_attached attached_t;

static int step(mca_coll_hetcoll_stepper_t *stepper)
{
    return hetcoll_calls_step(((attached_t *)stepper)->calls);
}

static mca_coll_hetcoll_module_t *find_module(struct ompi_communicator_t *comm)
{
    if (NULL == mca_coll_hetcoll_component.process || MPI_COMM_NULL == comm ||
        NULL == comm->c_coll) {
        return NULL;
    }
    return mca_coll_hetcoll_own_module(comm->c_coll->coll_allreduce_module, comm);
}

static attached_t *find(struct ompi_communicator_t *comm, hetcoll_stream_t stream,
                        mca_coll_hetcoll_module_t **of)
{
    mca_coll_hetcoll_module_t *module = find_module(comm);
    attached_t *at = NULL == module ? NULL : module->attached;
    while (NULL != at && at->stream != stream) {
        at = at->next;
    }
    *of = module;
    return at;
}

static void drop_handles(struct handles *handles)
{
    if (NULL != handles->dtype) {
        OBJ_RELEASE(handles->dtype);
        OBJ_RELEASE(handles->op);
        handles->dtype = NULL;
    }
}

static void destroy(attached_t *attached)
{
    for (int i = 0; i < HETCOLL_STREAM_CALLS; ++i) {
        drop_handles(&attached->handles[i]);
    }
    if (NULL != attached->calls) {
        hetcoll_calls_destroy(attached->calls);
    }
    free(attached);
}

/* Also of a communicator that is freed with its streams attached: its calls are complete on no rank
 * before they are on all. */
static int end(mca_coll_hetcoll_module_t *module, attached_t *attached)
{
    while (!hetcoll_calls_is_idle(attached->calls)) {
        opal_progress();
    }
    mca_coll_hetcoll_stepper_remove(&attached->stepper);
    attached_t **link = &module->attached;
    while (*link != attached) {
        link = &(*link)->next;
    }
    *link = attached->next;
    const int error = hetcoll_calls_take_error(attached->calls);
    destroy(attached);
    return mca_coll_hetcoll_error_from_core(error);
}

void mca_coll_hetcoll_detach_all(mca_coll_hetcoll_module_t *module)
{
    while (NULL != module->attached) {
        (void)end(module, module->attached);
    }
}

static void say(int level, const char *what, const char *why)
{
    char line[768];
    snprintf(line, sizeof line, "hetcoll: %s%s", what, why);
    mca_coll_hetcoll_log(level, line);
}

/* The state of this rank's stream. The largest of all ranks counts. */
enum outcome { QUEUES, QUEUES_PREPARED, SYNCHRONISES, REFUSED };

static enum outcome make(mca_coll_hetcoll_module_t *module, hetcoll_stream_t stream,
                         size_t most_bytes, attached_t **made)
{
    char why[512];
    *made = NULL;
    if (NULL == module || (HETCOLL_STATE_NEW == module->state &&
                           OMPI_SUCCESS != mca_coll_hetcoll_first_call(module, true))) {
        return SYNCHRONISES;
    }
    if (HETCOLL_STATE_READY != module->state) {
        return SYNCHRONISES; /* no rank can have a GPU */
    }
    const char *reason = NULL;
    if (HETCOLL_PRE_SYNC_CONTEXT == mca_coll_hetcoll_component.settings.pre_sync) {
        reason = "with coll_hetcoll_pre_sync context a call would wait for those behind it";
    } else if (!mca_coll_hetcoll_component.thread_multiple) {
        reason = "MPI was not initialised with MPI_THREAD_MULTIPLE";
    } else if (!mca_coll_hetcoll_start_thread()) {
        reason = "no thread can be made";
    }
    if (NULL != reason) {
        say(0 == opal_process_info.my_local_rank ? 0 : 1,
            "calls on CUDA streams are not queued, they synchronise instead: ", reason);
        return SYNCHRONISES;
    }
    while (hetcoll_process_has_queued(mca_coll_hetcoll_component.process)) {
        opal_progress(); /* what is made now waits for the device, and the device for these */
    }
    attached_t *attached = hetcoll_allocate(sizeof *attached);
    if (NULL == attached) {
        say(0, "a CUDA stream cannot be attached: ", "out of host memory");
        return REFUSED;
    }
    attached->module = module;
    attached->stream = stream;
    attached->stepper.step = step;
    attached->calls = hetcoll_calls_create(module->core, stream, most_bytes, why, sizeof why);
    if (NULL == attached->calls) {
        say(0, "a CUDA stream cannot be attached: ", why);
        destroy(attached);
        return REFUSED;
    }
    const int capturing = hetcoll_calls_is_capturing(attached->calls, why, sizeof why);
    if (0 != capturing) {
        say(0, "a CUDA stream cannot be attached: ",
            0 < capturing ? "a graph is being captured on it, attach it before" : why);
        destroy(attached);
        return REFUSED;
    }
    *made = attached;
    return HETCOLL_QUEUED_CALLS_ALL == mca_coll_hetcoll_component.settings.queued_calls
               ? QUEUES
               : QUEUES_PREPARED;
}

static int attach(MPI_Comm comm, hetcoll_stream_t stream, size_t most_bytes)
{
    mca_coll_hetcoll_module_t *module;
    attached_t *attached = find(comm, stream, &module);
    if (NULL != attached) {
        say(0, "a CUDA stream cannot be attached: ", "it is attached to the communicator already");
    }
    int mine = NULL != attached
                   ? (int)REFUSED
                   : (int)make(module, stream, 0 == most_bytes ? DEFAULT_MOST_BYTES : most_bytes,
                               &attached);
    int all = mine;
    int rc = comm->c_coll->coll_allreduce(&mine, &all, 1, &ompi_mpi_int.dt, &ompi_mpi_op_max.op,
                                          comm, comm->c_coll->coll_allreduce_module);
    const bool made = (int)QUEUES_PREPARED >= mine;
    if (OMPI_SUCCESS == rc && (int)QUEUES_PREPARED >= all) {
        attached->prepared_only = (int)QUEUES_PREPARED == all;
        rc = mca_coll_hetcoll_error_from_core(
            hetcoll_calls_attach(attached->calls, MCA_COLL_HETCOLL_TAG));
    } else if (OMPI_SUCCESS == rc) {
        if (made) {
            destroy(attached);
        }
        return (int)SYNCHRONISES == all ? MPI_SUCCESS : MPI_ERR_ARG;
    }
    if (OMPI_SUCCESS != rc) {
        if (made) {
            destroy(attached);
        }
        return rc;
    }
    attached->next = module->attached;
    module->attached = attached;
    mca_coll_hetcoll_stepper_add(&attached->stepper);
    return MPI_SUCCESS;
}

static int detach(MPI_Comm comm, hetcoll_stream_t stream)
{
    mca_coll_hetcoll_module_t *module;
    attached_t *attached = find(comm, stream, &module);
    return NULL == attached ? MPI_SUCCESS : end(module, attached);
}

static int check(MPI_Comm comm, hetcoll_stream_t stream)
{
    mca_coll_hetcoll_module_t *module;
    attached_t *attached = find(comm, stream, &module);
    return NULL == attached
               ? MPI_SUCCESS
               : mca_coll_hetcoll_error_from_core(hetcoll_calls_take_error(attached->calls));
}

static int is_attached(MPI_Comm comm, hetcoll_stream_t stream)
{
    mca_coll_hetcoll_module_t *module;
    return NULL != find(comm, stream, &module);
}

/* A user-defined op that hetcoll does not know. */
static void reduce_on_host(void *context, const void *in, void *inout, size_t count)
{
    const struct handles *handles = context;
    ompi_op_reduce(handles->op, (void *)in, inout, (hetcoll_count_t)count, handles->dtype);
}

static int refuse_capture(const char *why)
{
    say(0, "a call cannot be queued, nothing was: ",
        NULL != why ? why
                    : "a graph is being captured on the stream, make the call outside of the "
                      "capture");
    return MPI_ERR_OTHER;
}

/* As all ranks find alike. */
static bool synchronises(attached_t *attached, const struct hetcoll_call *call)
{
    if (OPAL_LIKELY(!attached->prepared_only || hetcoll_calls_prepares(attached->calls, call))) {
        return false;
    }
    if (!attached->told) {
        attached->told = true;
        say(0 == opal_process_info.my_local_rank ? 0 : 1,
            "a call on a CUDA stream is not queued, it synchronises instead: ",
            "its kernels and copies cannot be given to the stream beforehand, and a program that "
            "frees memory, copies or loads a kernel meanwhile would hang. "
            "coll_hetcoll_queued_calls all queues such calls too (docs/streams.md)");
    }
    return true;
}

/* `dtype` and `op` are held if the call may need them. Returns an error of an earlier call. */
static int enqueue(attached_t *attached, struct hetcoll_call *call, struct ompi_datatype_t *dtype,
                   struct ompi_op_t *op)
{
    char why[512];
    const int capturing = hetcoll_calls_is_capturing(attached->calls, why, sizeof why);
    if (OPAL_UNLIKELY(0 != capturing)) {
        mca_coll_hetcoll_refuse_captured(attached->module, ++attached->module->calls);
        return refuse_capture(0 < capturing ? NULL : why);
    }
    if (synchronises(attached, call)) {
        return HETCOLL_STREAM_SYNCHRONISE_; /* MPI's function counts it */
    }
    call->number = ++attached->module->calls;
    int slot;
    while (OPAL_UNLIKELY(0 > (slot = hetcoll_calls_slot(attached->calls)))) {
        opal_progress();
    }
    struct handles *handles = &attached->handles[slot];
    drop_handles(handles);
    if (OPAL_UNLIKELY(0 != call->user_op)) {
        OBJ_RETAIN(dtype);
        OBJ_RETAIN(op);
        handles->dtype = dtype;
        handles->op = op;
    }
    call->tag = MCA_COLL_HETCOLL_TAG;
    call->reduce = reduce_on_host;
    call->context = handles;
    const int queued = hetcoll_calls_enqueue(attached->calls, call);
    if (HETCOLL_ERROR_NO_MEMORY == queued) {
        mca_coll_hetcoll_refuse_call(attached->module, call->number);
        return MPI_ERR_NO_MEM;
    }
    mca_coll_hetcoll_stepper_wake();
    while (
        OPAL_UNLIKELY(HETCOLL_STREAM_WAIT == queued && !hetcoll_calls_is_idle(attached->calls))) {
        opal_progress();
    }
    return mca_coll_hetcoll_error_from_core(hetcoll_calls_take_error(attached->calls));
}

static int allreduce(const void *sbuf, void *rbuf, int count, MPI_Datatype dtype, MPI_Op op,
                     MPI_Comm comm, hetcoll_stream_t stream)
{
    mca_coll_hetcoll_module_t *module;
    attached_t *attached = find(comm, stream, &module);
    if (NULL == attached || 0 >= count) {
        return HETCOLL_STREAM_SYNCHRONISE_;
    }
    struct hetcoll_call call = {.send = MPI_IN_PLACE == sbuf ? rbuf : sbuf, .recv = rbuf};
    mca_coll_hetcoll_describe(module, &call, (size_t)count, dtype, op);
    if (0 > call.kind && 0 == call.user_op) {
        return HETCOLL_STREAM_SYNCHRONISE_; /* as on all ranks */
    }
    return enqueue(attached, &call, dtype, op);
}

/* Sets *call if hetcoll has a schedule for it, as all ranks find alike. */
static int collective(attached_t *attached, bool is_ours, struct hetcoll_call *call)
{
    return is_ours ? enqueue(attached, call, NULL, NULL) : HETCOLL_STREAM_SYNCHRONISE_;
}

static int bcast(void *buffer, int count, MPI_Datatype dtype, int root, MPI_Comm comm,
                 hetcoll_stream_t stream)
{
    mca_coll_hetcoll_module_t *module;
    attached_t *attached = find(comm, stream, &module);
    struct hetcoll_call call;
    return collective(
        attached,
        NULL != attached && 0 < count && 1 < ompi_comm_size(comm) &&
            mca_coll_hetcoll_describe_bcast(&call, buffer, (size_t)count, dtype, root),
        &call);
}

static int allgather(const void *sbuf, int scount, MPI_Datatype sdtype, void *rbuf, int rcount,
                     MPI_Datatype rdtype, MPI_Comm comm, hetcoll_stream_t stream)
{
    mca_coll_hetcoll_module_t *module;
    attached_t *attached = find(comm, stream, &module);
    struct hetcoll_call call;
    return collective(attached,
                      NULL != attached && 0 < rcount && 1 < ompi_comm_size(comm) &&
                          mca_coll_hetcoll_describe_allgather(&call, sbuf, (size_t)scount, sdtype,
                                                              rbuf, (size_t)rcount, rdtype, comm),
                      &call);
}

static int reduce_scatter_block(const void *sbuf, void *rbuf, int count, MPI_Datatype dtype,
                                MPI_Op op, MPI_Comm comm, hetcoll_stream_t stream)
{
    mca_coll_hetcoll_module_t *module;
    attached_t *attached = find(comm, stream, &module);
    struct hetcoll_call call;
    return collective(attached,
                      NULL != attached && 0 < count && 1 < ompi_comm_size(comm) &&
                          mca_coll_hetcoll_describe_reduce(
                              module, &call, HETCOLL_REDUCE_SCATTER, sbuf, rbuf,
                              (size_t)count * (size_t)ompi_comm_size(comm), dtype, op, 0),
                      &call);
}

static int reduce(const void *sbuf, void *rbuf, int count, MPI_Datatype dtype, MPI_Op op, int root,
                  MPI_Comm comm, hetcoll_stream_t stream)
{
    mca_coll_hetcoll_module_t *module;
    attached_t *attached = find(comm, stream, &module);
    struct hetcoll_call call;
    return collective(
        attached,
        NULL != attached && 0 < count && 1 < ompi_comm_size(comm) &&
            mca_coll_hetcoll_describe_reduce(module, &call, HETCOLL_REDUCE, sbuf,
                                             ompi_comm_rank(comm) == root ? rbuf : NULL,
                                             (size_t)count, dtype, op, root),
        &call);
}

OMPI_DECLSPEC extern const struct hetcoll_stream_functions_1 hetcoll_stream_functions_1;
const struct hetcoll_stream_functions_1 hetcoll_stream_functions_1 = {
    .attach = attach,
    .detach = detach,
    .check = check,
    .is_attached = is_attached,
    .allreduce = allreduce,
    .bcast = bcast,
    .allgather = allgather,
    .reduce_scatter_block = reduce_scatter_block,
    .reduce = reduce,
};

/* For programs that cannot see the symbol. */
void mca_coll_hetcoll_register_stream_functions(void)
{
    static unsigned long long address;
    address = (unsigned long long)(uintptr_t)&hetcoll_stream_functions_1;
    (void)mca_base_component_var_register(
        &mca_coll_hetcoll_component.super.collm_version, "stream_functions_1",
        "Where hetcoll_stream.h finds its functions, for programs that do not see the component's "
        "symbols: not to be set",
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, 0, 0, OPAL_INFO_LVL_9,
        MCA_BASE_VAR_SCOPE_CONSTANT, &address);
}
