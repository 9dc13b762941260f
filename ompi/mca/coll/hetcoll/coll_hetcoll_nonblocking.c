/* MPI_Iallreduce and MPI_Allreduce_init: the core's operations as Open MPI's requests. */
#include "coll_hetcoll_request.h"
#include "coll_hetcoll_staged.h"

#include <stdlib.h>

/* The request's work. */
struct pending {
    struct hetcoll_call call;
    struct hetcoll_operation *operation;
    mca_coll_hetcoll_module_t *module;
    struct ompi_datatype_t *dtype;
    struct ompi_op_t *op;
};

/* A user-defined op that hetcoll does not know. The request holds the handles. */
static void reduce(void *context, const void *in, void *inout, size_t count)
{
    const struct pending *pending = context;
    ompi_op_reduce(pending->op, (void *)in, inout, (hetcoll_count_t)count, pending->dtype);
}

static int step(mca_coll_hetcoll_request_t *request, int *error)
{
    struct pending *pending = request->work;
    int result;
    if (0 == hetcoll_operation_step(pending->operation, &result)) {
        return 0;
    }
    *error = mca_coll_hetcoll_error_from_core(result);
    return 1;
}

/* The start of a persistent request. */
static int start(mca_coll_hetcoll_request_t *request)
{
    struct pending *pending = request->work;
    pending->call.number = ++pending->module->calls;
    hetcoll_operation_start(pending->operation);
    return OMPI_SUCCESS;
}

static void destroy(mca_coll_hetcoll_request_t *request)
{
    struct pending *pending = request->work;
    hetcoll_operation_destroy(pending->operation);
    free(pending);
}

static int make(mca_coll_hetcoll_module_t *module, const struct hetcoll_call *call,
                struct ompi_datatype_t *dtype, struct ompi_op_t *op, bool persistent,
                mca_coll_hetcoll_request_t **made)
{
    struct pending *pending = hetcoll_allocate(sizeof *pending);
    mca_coll_hetcoll_request_t *request = mca_coll_hetcoll_request_new(module->comm, persistent);
    if (NULL == pending || NULL == request) {
        free(pending);
        if (NULL != request) {
            mca_coll_hetcoll_request_drop(request);
        }
        return MPI_ERR_NO_MEM;
    }
    *pending = (struct pending){.call = *call, .module = module, .dtype = dtype, .op = op};
    pending->call.reduce = reduce;
    pending->call.context = pending;
    pending->operation = hetcoll_operation_create(module->core, &pending->call, persistent);
    if (NULL == pending->operation) {
        free(pending);
        mca_coll_hetcoll_request_drop(request);
        return MPI_ERR_NO_MEM;
    }
    request->work = pending;
    request->step = step;
    request->start = start;
    request->destroy = destroy;
    *made = request;
    return OMPI_SUCCESS;
}

/* A call that the core does not reduce: host memory in place of device memory, as for other
 * collectives; it reads and writes what a scan does. `always`: with coll_hetcoll_stage never, too.
 */
static int stage(struct hetcoll_staged_call *staged, const char *name,
                 enum hetcoll_staged_kind kind, const void *sbuf, void *rbuf, size_t count,
                 struct ompi_datatype_t *dtype, struct ompi_communicator_t *comm, bool always)
{
    const mca_coll_hetcoll_component_t *component = &mca_coll_hetcoll_component;
    *staged = (struct hetcoll_staged_call){
        .name = name,
        .send = {.buffer = sbuf, .count = count, .dtype = dtype},
        .recv = {.buffer = rbuf, .count = count, .dtype = dtype},
        .comm = comm,
        .reduces = true,
    };
    const bool stages = HETCOLL_STAGE_NOTHING != component->stage_mode ||
                        (always && HETCOLL_STAGE_NEVER == component->settings.stage);
    return stages ? mca_coll_hetcoll_stage(staged, mca_coll_hetcoll_data_scan, kind) : OMPI_SUCCESS;
}

/* Sets *call. False: the previous module serves this call, on every rank. Also where the first call
 * has found no memory. */
static bool is_ours(mca_coll_hetcoll_module_t *module, struct hetcoll_call *call, const void *sbuf,
                    void *rbuf, size_t count, struct ompi_datatype_t *dtype, struct ompi_op_t *op)
{
    if (HETCOLL_STATE_PREVIOUS == module->state || 0 == count) {
        return false;
    }
    *call = (struct hetcoll_call){
        .send = MPI_IN_PLACE == sbuf ? rbuf : sbuf,
        .recv = rbuf,
        .tag = MCA_COLL_HETCOLL_TAG,
    };
    mca_coll_hetcoll_describe(module, call, count, dtype, op);
    return 0 <= call->kind || 0 != call->user_op;
}

static int find_module(mca_coll_base_module_t *base, struct ompi_communicator_t *comm,
                       mca_coll_hetcoll_module_t **module)
{
    *module = mca_coll_hetcoll_own_module(base, comm);
    if (NULL == *module) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    /* Open MPI looks at this before blocking calls alone. */
    return mca_coll_hetcoll_broken(comm);
}

static int ready(mca_coll_hetcoll_module_t *module, bool blocking)
{
    return HETCOLL_STATE_NEW == module->state ? mca_coll_hetcoll_first_call(module, blocking)
                                              : OMPI_SUCCESS;
}

/* Open MPI's own calls look like this when it makes communicators. It begins collectives of an
 * inter-communicator's local group when such a call completes, and counts on all ranks beginning
 * them in the same order. That holds as long as calls that are under way together complete
 * together, as they mostly do in libnbc; ours run one after the other. */
static bool makes_communicators(hetcoll_count_t count, const struct ompi_datatype_t *dtype,
                                const struct ompi_op_t *op)
{
    return 1 == count && &ompi_mpi_int.dt == dtype &&
           (&ompi_mpi_op_max.op == op || &ompi_mpi_op_min.op == op);
}

static int previous_iallreduce(mca_coll_hetcoll_module_t *module, const void *sbuf, void *rbuf,
                               hetcoll_count_t count, struct ompi_datatype_t *dtype,
                               struct ompi_op_t *op, ompi_request_t **request, bool always)
{
    struct hetcoll_staged_call staged;
    int rc = stage(&staged, "iallreduce", HETCOLL_NONBLOCKING, sbuf, rbuf, (size_t)count, dtype,
                   module->comm, always);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = module->previous_iallreduce(staged.send.buffer, (void *)(uintptr_t)staged.recv.buffer,
                                     count, dtype, op, module->comm, request,
                                     module->previous_iallreduce_module);
    return NULL == staged.stage ? rc : mca_coll_hetcoll_staged_end_request(&staged, rc, request);
}

int mca_coll_hetcoll_iallreduce(const void *sbuf, void *rbuf, hetcoll_count_t count,
                                struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                struct ompi_communicator_t *comm, ompi_request_t **request,
                                mca_coll_base_module_t *base)
{
    mca_coll_hetcoll_module_t *module;
    mca_coll_hetcoll_request_t *made;
    struct hetcoll_call call;
    int rc = find_module(base, comm, &module);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (makes_communicators(count, dtype, op)) {
        return previous_iallreduce(module, sbuf, rbuf, count, dtype, op, request, true);
    }
    const unsigned number = ++module->calls;
    rc = ready(module, false);
    if (!is_ours(module, &call, sbuf, rbuf, (size_t)count, dtype, op)) {
        return previous_iallreduce(module, sbuf, rbuf, count, dtype, op, request, false);
    }
    call.number = number;
    if (OMPI_SUCCESS == rc) {
        rc = make(module, &call, dtype, op, false, &made);
    }
    if (OMPI_SUCCESS != rc) {
        mca_coll_hetcoll_refuse_call(module, number);
        return rc;
    }
    hetcoll_operation_start(((struct pending *)made->work)->operation);
    *request = &made->super.super;
    mca_coll_hetcoll_request_begin(made);
    return OMPI_SUCCESS;
}

/* Otherwise the others would start a request that this rank could not make, and wait for it. MPI
 * lets the making of persistent collectives wait for all ranks. */
static int agree_on_request(mca_coll_hetcoll_module_t *module, const struct hetcoll_call *call,
                            int rc)
{
    if (NULL == module->core) {
        return mca_coll_hetcoll_refuse_blocking(module, call->number);
    }
    if (OMPI_SUCCESS != rc) {
        mca_coll_hetcoll_log(0, "hetcoll: MPI_Allreduce_init fails on all ranks: this one has no "
                                "host memory for its request");
    }
    struct hetcoll_call making = *call; /* no rank is in an allreduce meanwhile */
    making.collective = HETCOLL_INIT_ALLREDUCE;
    const int all = hetcoll_agree_on_copies(module->core, &making, OMPI_SUCCESS != rc);
    return OMPI_SUCCESS != rc || HETCOLL_DECLINED == all ? rc
                                                         : mca_coll_hetcoll_error_from_core(all);
}

int mca_coll_hetcoll_allreduce_init(const void *sbuf, void *rbuf, hetcoll_count_t count,
                                    struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                    struct ompi_communicator_t *comm, struct ompi_info_t *info,
                                    ompi_request_t **request, mca_coll_base_module_t *base)
{
    mca_coll_hetcoll_module_t *module;
    mca_coll_hetcoll_request_t *made = NULL;
    struct hetcoll_call call;
    int rc = find_module(base, comm, &module);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    rc = ready(module, true);
    if (!is_ours(module, &call, sbuf, rbuf, (size_t)count, dtype, op)) {
        struct hetcoll_staged_call staged;
        rc = stage(&staged, "allreduce_init", HETCOLL_PERSISTENT, sbuf, rbuf, (size_t)count, dtype,
                   comm, false);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        rc = module->previous_allreduce_init(
            staged.send.buffer, (void *)(uintptr_t)staged.recv.buffer, count, dtype, op, comm, info,
            request, module->previous_allreduce_init_module);
        return NULL == staged.stage ? rc
                                    : mca_coll_hetcoll_staged_end_request(&staged, rc, request);
    }
    call.number = ++module->calls;
    if (OMPI_SUCCESS == rc) {
        rc = make(module, &call, dtype, op, true, &made);
    }
    const int all = agree_on_request(module, &call, rc);
    if (OMPI_SUCCESS == all) {
        *request = &made->super.super;
    } else if (OMPI_SUCCESS == rc) {
        mca_coll_hetcoll_request_drop(made);
    }
    return all;
}
