/* MPI_Allreduce: left to the previous module where no rank can have a GPU, else the core's. */
#include "coll_hetcoll.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/base/coll_tags.h"
#include "opal/runtime/opal_progress.h"

/* The context with which the core reaches the previous module. */
struct host_call {
    mca_coll_hetcoll_module_t *module;
    size_t count;
    struct ompi_datatype_t *dtype;
    struct ompi_op_t *op;
};

static int previous_allreduce(const mca_coll_hetcoll_module_t *module, const void *sbuf, void *rbuf,
                              size_t count, struct ompi_datatype_t *dtype, struct ompi_op_t *op)
{
    return module->previous_allreduce(sbuf, rbuf, (hetcoll_count_t)count, dtype, op, module->comm,
                                      module->previous_allreduce_module);
}

/* The same, and who watches calls is told. If nobody did at the first call this is not called:
 * hetcoll has left the slot. */
static int traced_previous(const mca_coll_hetcoll_module_t *module, const void *sbuf, void *rbuf,
                           size_t count, struct ompi_datatype_t *dtype, struct ompi_op_t *op)
{
    struct hetcoll_process *process = mca_coll_hetcoll_component.process;
    const uint64_t start_ns = hetcoll_trace_clock(process);
    const int rc = previous_allreduce(module, sbuf, rbuf, count, dtype, op);
    if (0 != start_ns) {
        struct hetcoll_call described;
        mca_coll_hetcoll_describe(module, &described, count, dtype, op);
        const struct hetcoll_other_call call = {
            .call = "allreduce",
            .comm_id = mca_coll_hetcoll_comm_id(module->comm),
            .tag = mca_coll_hetcoll_tag(module),
            .rank = ompi_comm_rank(module->comm),
            .comm_size = ompi_comm_size(module->comm),
            .bytes = described.span,
            .kind = described.kind,
            .op = 0 <= described.kind ? described.op : -1,
            .start_ns = start_ns,
            .failed = OMPI_SUCCESS != rc,
        };
        hetcoll_trace_call(process, &call);
    }
    return rc;
}

/* Modules make collectives of other collectives: basic's allreduce is a reduce and a broadcast on
 * the same communicator, whose slots are ours. The core is in this call, on every rank, so they
 * go to the modules before us. */
static int reduce_by_previous(void *context, const void *send, void *recv)
{
    const struct host_call *call = context;
    call->module->delegates = true;
    const int rc = previous_allreduce(call->module, send == recv ? MPI_IN_PLACE : send, recv,
                                      call->count, call->dtype, call->op);
    call->module->delegates = false;
    return mca_coll_hetcoll_error_to_core(rc);
}

static void tell_runs(void *context, hetcoll_take_run *take, void *to)
{
    const struct host_call *call = context;
    mca_coll_hetcoll_tell_runs(call->dtype, call->count, 0, take, to);
}

/* "mca_coll_tuned.so": who the previous module is, as far as its function tells. */
static void name_previous(const mca_coll_hetcoll_module_t *module, char *name, size_t bytes)
{
    Dl_info info;
    const char *file = "the previous module";
    if (0 != dladdr((void *)(uintptr_t)module->previous_allreduce, &info) &&
        NULL != info.dli_fname) {
        const char *slash = strrchr(info.dli_fname, '/');
        file = NULL == slash ? info.dli_fname : slash + 1;
    }
    snprintf(name, bytes, "%s", file);
}

static void explain(const mca_coll_hetcoll_module_t *module, const struct hetcoll_facts *facts)
{
    /* Where a job mixes builds, a GPU would be left unused without a word: that is said once. */
    static bool mixed_builds_reported = false;
    const bool mixed_builds = 0 == facts->protocol;
    const int level = mixed_builds && !mixed_builds_reported ? 0 : 1;
    const int size = ompi_comm_size(module->comm);
    const char *const s = 1 == size ? "" : "s";
    char previous[64], line[512];
    if (0 != ompi_comm_rank(module->comm) || level > mca_coll_hetcoll_component.settings.verbose) {
        return;
    }
    mixed_builds_reported = mixed_builds_reported || mixed_builds;
    name_previous(module, previous, sizeof previous);
    if (HETCOLL_STATE_READY == module->state) {
        snprintf(
            line, sizeof line,
            "hetcoll: communicator of %d rank%s: Allreduce on device memory: hetcoll; on host "
            "memory: hetcoll up to %u bytes, larger calls go to %s after one agreement, because "
            "a rank may have a GPU",
            size, s, (unsigned)facts->small_limit, previous);
    } else {
        snprintf(
            line, sizeof line,
            "hetcoll: communicator of %d rank%s: Allreduce on any memory: %s, as without hetcoll, "
            "because %s",
            size, s, previous,
            mixed_builds ? "hetcoll is off, of another version or of another priority on some rank"
                         : "no rank can have a GPU");
    }
    mca_coll_hetcoll_log(level, line);
}

/* Where the ranks' tables differ one may take a function for a sum and another for a maximum: then
 * nobody knows any, and that is said once. */
static void compare_user_ops(const mca_coll_hetcoll_module_t *module,
                             const struct hetcoll_facts *of_rank)
{
    static bool reported = false;
    const int size = ompi_comm_size(module->comm);
    if (module->user_ops || 0 != ompi_comm_rank(module->comm) || reported) {
        return;
    }
    for (int rank = 1; rank < size; ++rank) {
        if (of_rank[rank].user_ops != of_rank[0].user_ops) {
            reported = true;
            mca_coll_hetcoll_log(0, "hetcoll: the ranks of a communicator have different "
                                    "coll_hetcoll_user_ops or coll_hetcoll_recognize_ops, so "
                                    "user-defined operations are left to Open MPI there, which is "
                                    "slower on device memory: set the same on every rank");
            return;
        }
    }
}

/* The first call on a communicator. Every rank comes to the same state: it reads the same facts. */
int mca_coll_hetcoll_first_call(mca_coll_hetcoll_module_t *module, bool blocking)
{
    struct hetcoll_process *process = mca_coll_hetcoll_component.process;
    struct hetcoll_facts facts;
    mca_coll_hetcoll_keep_spare();
    if (blocking) {
        mca_coll_hetcoll_end_refusals(module);
    } else if (mca_coll_hetcoll_is_refusing(module)) {
        opal_progress();
    }
    struct hetcoll_facts *of_rank = mca_coll_hetcoll_collect_facts(module->comm, &facts);
    if (0 == facts.protocol || 0 == facts.may_have_gpu) {
        module->state = HETCOLL_STATE_PREVIOUS;
        explain(module, &facts);
        if (0 == hetcoll_trace_clock(process)) {
            mca_coll_hetcoll_leave(module);
        }
        free(of_rank);
        return OMPI_SUCCESS;
    }
    module->collectives = 0 != facts.collectives;
    module->user_ops = 0 != facts.user_ops;
    if (NULL == of_rank || mca_coll_hetcoll_is_refusing(module)) {
        free(of_rank);
        return MPI_ERR_NO_MEM;
    }
    mca_coll_hetcoll_apply_settings(&facts);
    mca_coll_hetcoll_apply_info(module, &facts);
    struct hetcoll_p2p p2p;
    struct ompi_communicator_t *self = &ompi_mpi_comm_self.comm;
    /* A program that uses sessions alone has no MPI_COMM_SELF to try this on. */
    if (NULL != self->c_local_group && mca_coll_hetcoll_pml_claims_device()) {
        mca_coll_hetcoll_fill_p2p(&p2p, self);
        hetcoll_process_offer_direct(process, &p2p, MCA_COLL_BASE_TAG_ALLREDUCE);
    }
    mca_coll_hetcoll_fill_p2p(&p2p, module->comm);
    module->core = hetcoll_comm_create(process, &p2p, &facts, of_rank);
    compare_user_ops(module, of_rank);
    free(of_rank);
    if (NULL == module->core) {
        return MPI_ERR_NO_MEM;
    }
    hetcoll_comm_set_tag(module->core, mca_coll_hetcoll_tag(module));
    hetcoll_comm_name_stream(module->core, module->names_stream, module->named_stream);
    if (module->collectives) {
        module->told = module->core;
    } else { /* there are ranks that do not see them */
        module->calls -= module->collective_calls;
    }
    module->state = HETCOLL_STATE_READY;
    explain(module, &facts);
    return OMPI_SUCCESS;
}

int mca_coll_hetcoll_allreduce(const void *sbuf, void *rbuf, hetcoll_count_t count,
                               struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                               struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    mca_coll_hetcoll_module_t *module = mca_coll_hetcoll_own_module(base, comm);
    if (OPAL_UNLIKELY(NULL == module || NULL == module->previous_allreduce)) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    if (OPAL_UNLIKELY(HETCOLL_STATE_NEW == module->state)) {
        const int rc = mca_coll_hetcoll_first_call(module, true);
        if (OMPI_SUCCESS != rc && 0 != count) {
            return mca_coll_hetcoll_refuse_blocking(module, ++module->calls);
        }
    }
    if (HETCOLL_STATE_PREVIOUS == module->state || 0 == count || module->delegates) {
        return traced_previous(module, sbuf, rbuf, count, dtype, op);
    }
    struct host_call host = {module, count, dtype, op};
    struct hetcoll_call call = {
        .send = MPI_IN_PLACE == sbuf ? rbuf : sbuf,
        .recv = rbuf,
        .number = ++module->calls,
        .tag = MCA_COLL_HETCOLL_TAG,
        .previous_allreduce = reduce_by_previous,
        .tell_runs = tell_runs,
        .context = &host,
    };
    mca_coll_hetcoll_describe_again(module, &call, count, dtype, op, true);
    return mca_coll_hetcoll_error_from_core(hetcoll_allreduce(module->core, &call));
}
