/* Before and after the previous module's function: the copies, and the requests of nonblocking and
 * persistent collectives. These copy in when they are called or started, blocking, and begin the
 * previous module's operation immediately, because it takes its tags in the order of the calls;
 * they copy out when that has completed. */
#include "coll_hetcoll_collectives.h"
#include "coll_hetcoll_request.h"
#include "coll_hetcoll_staged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"
#include "opal/sys/atomic.h"

static void copy(struct hetcoll_stage *stage, int use)
{
    hetcoll_stage_start(stage, use);
    while (!hetcoll_stage_is_done(stage)) {
        opal_progress();
    }
}

static int finish(struct hetcoll_stage *stage, const char *name)
{
    return mca_coll_hetcoll_error_from_core(hetcoll_stage_finish(stage, name));
}

static void end_job(struct ompi_communicator_t *comm, const char *name, const char *why, int code)
{
    char line[320];
    snprintf(line, sizeof line,
             "hetcoll ends the job: rank %d of a communicator of %d cannot copy its data for %s %s",
             ompi_comm_rank(comm), ompi_comm_size(comm), name, why);
    mca_coll_hetcoll_log(0, line);
    (void)ompi_mpi_abort(comm, code);
}

/* No other rank may succeed with data that this one does not have, and they do not meet. */
static void copy_in(struct hetcoll_stage *stage, const char *name, struct ompi_communicator_t *comm)
{
    copy(stage, HETCOLL_STAGE_READ);
    if (OPAL_LIKELY(hetcoll_stage_has_input(stage)) || NULL == comm || 1 == ompi_comm_size(comm)) {
        return;
    }
    (void)finish(stage, name);
    end_job(comm, name, "from its GPU, and the other ranks would go on without them and not know",
            MPI_ERR_OTHER);
}

static void drop(struct hetcoll_staged_call *call)
{
    hetcoll_stage_destroy(call->stage);
    call->stage = NULL;
}

static struct hetcoll_other_call record_of(const struct hetcoll_staged_call *call)
{
    const mca_coll_hetcoll_module_t *module =
        NULL == call->comm || NULL == call->comm->c_coll
            ? NULL
            : mca_coll_hetcoll_own_module(call->comm->c_coll->coll_allreduce_module, call->comm);
    return (struct hetcoll_other_call){
        .call = call->name,
        .comm_id = NULL == call->comm ? 0 : mca_coll_hetcoll_comm_id(call->comm),
        .tag = NULL == module ? NULL : mca_coll_hetcoll_tag(module),
        .rank = call->rank,
        .comm_size = call->size,
        .bytes = call->bytes,
        .kind = -1,
        .op = -1,
        .device = 1,
        .reason = HETCOLL_REASON_COLLECTIVE,
        .start_ns = call->start_ns,
    };
}

static void trace(struct hetcoll_other_call *record, int rc)
{
    record->failed = OMPI_SUCCESS != rc;
    if (0 != record->start_ns) {
        hetcoll_trace_call(mca_coll_hetcoll_component.process, record);
    }
}

/* The other ranks, which do not meet this one, would wait for it in Open MPI's collective. */
static int out_of_memory(struct hetcoll_staged_call *call, enum hetcoll_staged_kind kind)
{
    if (NULL != call->stage) {
        (void)finish(call->stage, call->name);
        drop(call);
    }
    if (HETCOLL_AGREED != kind && 1 < call->size) {
        end_job(call->comm, call->name,
                "to host memory, because none is left, and the other ranks would wait for it: use "
                "smaller messages, or fewer ranks on the node",
                MPI_ERR_NO_MEM);
    }
    return MPI_ERR_NO_MEM;
}

/* Once, or every time with coll_hetcoll_verbose 2. */
static void explain(const struct hetcoll_staged_call *call)
{
    static bool explained = false;
    char line[256];
    const int level = explained ? 2 : 1;
    if (0 != call->rank || level > mca_coll_hetcoll_component.settings.verbose) {
        return;
    }
    explained = true;
    const char *reason = "Open MPI does not say that it takes device pointers";
    if (HETCOLL_STAGE_REDUCTIONS == mca_coll_hetcoll_component.stage_mode) {
        reason = call->reduces ? "Open MPI reduces on the host"
                               : "not all of Open MPI's CUDA support takes this kind of memory";
    } else if (HETCOLL_STAGE_ALWAYS == mca_coll_hetcoll_component.settings.stage) {
        reason = "coll_hetcoll_stage is always";
    }
    snprintf(line, sizeof line,
             "hetcoll: %s of %zu bytes on device memory: copied to the host and served there by "
             "Open MPI, because %s",
             call->name, call->bytes, reason);
    mca_coll_hetcoll_log(level, line);
}

/* ---- requests ---- */

struct work {
    struct hetcoll_other_call record; /* with the name */
    struct hetcoll_stage *stage;      /* NULL: given back */
    ompi_request_t *inner;            /* of the previous module */
    bool persistent, copying;
};

static int advance(struct work *work, int *error)
{
    if (!work->copying) {
        if (!REQUEST_COMPLETE(work->inner)) {
            return 0;
        }
        opal_atomic_rmb();
        const int rc = work->inner->req_status.MPI_ERROR;
        if (work->persistent) {
            work->inner->req_state = OMPI_REQUEST_INACTIVE;
        } else {
            (void)ompi_request_free(&work->inner);
        }
        if (MPI_SUCCESS != rc) {
            (void)finish(work->stage, work->record.call);
            *error = rc;
            return 1;
        }
        work->copying = true;
        hetcoll_stage_start(work->stage, HETCOLL_STAGE_WRITTEN);
    }
    if (!hetcoll_stage_is_done(work->stage)) {
        return 0;
    }
    work->copying = false;
    *error = finish(work->stage, work->record.call);
    if (!work->persistent) { /* the program may keep the request for long */
        hetcoll_stage_destroy(work->stage);
        work->stage = NULL;
    }
    return 1;
}

static int step(mca_coll_hetcoll_request_t *request, int *error)
{
    struct work *work = request->work;
    const int complete = advance(work, error);
    if (complete) {
        trace(&work->record, *error);
    }
    return complete;
}

static int start(mca_coll_hetcoll_request_t *request)
{
    struct work *work = request->work;
    work->record.start_ns = hetcoll_trace_clock(mca_coll_hetcoll_component.process);
    copy_in(work->stage, work->record.call, request->comm);
    if (OMPI_REQUEST_NOOP == work->inner->req_type) { /* nothing to do; it cannot be started */
        work->inner->req_state = OMPI_REQUEST_ACTIVE;
        return OMPI_SUCCESS;
    }
    return work->inner->req_start(1, &work->inner);
}

static void destroy(mca_coll_hetcoll_request_t *request)
{
    struct work *work = request->work;
    if (NULL != work->inner && MPI_REQUEST_NULL != work->inner) {
        (void)ompi_request_free(&work->inner);
    }
    if (NULL != work->stage) {
        hetcoll_stage_destroy(work->stage);
    }
    free(work);
}

/* Made before the previous module's, which could not be taken back. */
static mca_coll_hetcoll_request_t *new_request(const struct hetcoll_staged_call *call,
                                               bool persistent)
{
    struct work *work = hetcoll_allocate(sizeof *work);
    mca_coll_hetcoll_request_t *request =
        NULL == work ? NULL : mca_coll_hetcoll_request_new(call->comm, persistent);
    if (NULL == request) {
        free(work);
        return NULL;
    }
    work->persistent = persistent;
    request->step = step;
    request->start = start;
    request->destroy = destroy;
    request->work = work;
    return request;
}

/* ---- the call ---- */

int mca_coll_hetcoll_stage(struct hetcoll_staged_call *call, hetcoll_staged_data_t *data,
                           enum hetcoll_staged_kind kind)
{
    call->error = OMPI_SUCCESS;
    if (NULL != call->comm) {
        call->rank = ompi_comm_rank(call->comm);
        call->size = ompi_comm_size(call->comm);
    }
    data(call);
    if (OPAL_UNLIKELY(OMPI_SUCCESS != call->error)) {
        return out_of_memory(call, kind);
    }
    if (NULL == call->stage) {
        return OMPI_SUCCESS;
    }
    if (HETCOLL_NONBLOCKING == kind || HETCOLL_PERSISTENT == kind) {
        call->request = new_request(call, HETCOLL_PERSISTENT == kind);
        if (NULL == call->request) {
            return out_of_memory(call, kind);
        }
    }
    explain(call);
    if (HETCOLL_PERSISTENT != kind) {
        call->start_ns = hetcoll_trace_clock(mca_coll_hetcoll_component.process);
        if (HETCOLL_AGREED == kind) {
            copy(call->stage, HETCOLL_STAGE_READ);
        } else {
            copy_in(call->stage, call->name, call->comm);
        }
    }
    return OMPI_SUCCESS;
}

int mca_coll_hetcoll_stage_together(struct hetcoll_staged_call *call, int rc,
                                    mca_coll_base_module_t *base)
{
    if (OMPI_SUCCESS == rc && NULL != call->stage) {
        rc = finish(call->stage, call->name);
    }
    const int all = mca_coll_hetcoll_agree_on_copies(base, call->comm, OMPI_SUCCESS != rc);
    if (OMPI_SUCCESS == all) {
        return OMPI_SUCCESS;
    }
    if (NULL != call->stage) {
        drop(call);
    }
    return OMPI_SUCCESS == rc ? all : rc;
}

int mca_coll_hetcoll_staged_end(struct hetcoll_staged_call *call, int rc)
{
    if (OMPI_SUCCESS == rc) {
        copy(call->stage, HETCOLL_STAGE_WRITTEN);
    }
    const int copied = finish(call->stage, call->name);
    struct hetcoll_other_call record = record_of(call);
    drop(call);
    rc = OMPI_SUCCESS == rc ? copied : rc;
    trace(&record, rc);
    return rc;
}

int mca_coll_hetcoll_staged_end_request(struct hetcoll_staged_call *call, int rc,
                                        ompi_request_t **request)
{
    mca_coll_hetcoll_request_t *own = call->request;
    struct work *work = own->work;
    work->stage = call->stage;
    if (OMPI_SUCCESS != rc) {
        (void)finish(call->stage, call->name);
        mca_coll_hetcoll_request_drop(own);
        return rc;
    }
    work->record = record_of(call);
    work->inner = *request;
    *request = &own->super.super;
    if (!work->persistent) {
        mca_coll_hetcoll_request_begin(own);
    }
    return OMPI_SUCCESS;
}
