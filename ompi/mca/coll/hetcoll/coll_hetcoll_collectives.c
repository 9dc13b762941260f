/* Bcast, Reduce, Allgather and Reduce_scatter on device memory by the core's own schedules, where
 * that is worth an agreement of all ranks. Only facts that are the same on every rank decide here;
 * what is local (where a buffer lies, holes in a datatype) goes into the agreement. For all other
 * blocking collectives the ranks of a node tell each other which they begin. */
#include "coll_hetcoll_collectives.h"

static bool is_dense(struct ompi_datatype_t *dtype, size_t count)
{
    ptrdiff_t lower_bound, extent;
    ompi_datatype_get_true_extent(dtype, &lower_bound, &extent);
    return 0 == lower_bound && ompi_datatype_is_contiguous_memory_layout(dtype, count);
}

static int run(mca_coll_hetcoll_module_t *module, struct hetcoll_call *call)
{
    call->tag = MCA_COLL_HETCOLL_TAG;
    const int result = hetcoll_collective(module->core, call);
    switch (result) {
    case HETCOLL_DECLINED: return MCA_COLL_HETCOLL_NOT_OURS;
    case HETCOLL_DECLINED_TO_STAGE: module->declined = *call; return MCA_COLL_HETCOLL_TOGETHER;
    default: return mca_coll_hetcoll_error_from_core(result);
    }
}

int mca_coll_hetcoll_agree_on_copies(mca_coll_base_module_t *base, struct ompi_communicator_t *comm,
                                     bool failed)
{
    mca_coll_hetcoll_module_t *module = mca_coll_hetcoll_own_module(base, comm);
    const int result = hetcoll_agree_on_copies(module->core, &module->declined, failed);
    return HETCOLL_DECLINED == result ? OMPI_SUCCESS : mca_coll_hetcoll_error_from_core(result);
}

/* Bytes, whatever they mean. */
static void describe_bytes(struct hetcoll_call *call, enum hetcoll_collective collective,
                           const void *send, void *recv, size_t bytes, bool dense, int root)
{
    *call = (struct hetcoll_call){
        .send = send,
        .recv = recv,
        .collective = (int)collective,
        .root = root,
        .kind = HETCOLL_UINT8,
        .op = HETCOLL_MAX,
        .count = bytes,
        .span = bytes,
        .dense = dense,
        .data_bytes = bytes,
    };
}

bool mca_coll_hetcoll_describe_bcast(struct hetcoll_call *call, void *buffer, size_t count,
                                     struct ompi_datatype_t *dtype, int root)
{
    size_t size;
    ompi_datatype_type_size(dtype, &size);
    describe_bytes(call, HETCOLL_BCAST, buffer, buffer, count * size, is_dense(dtype, count), root);
    return 0 != call->count;
}

bool mca_coll_hetcoll_describe_allgather(struct hetcoll_call *call, const void *sbuf, size_t scount,
                                         struct ompi_datatype_t *sdtype, void *rbuf, size_t rcount,
                                         struct ompi_datatype_t *rdtype,
                                         struct ompi_communicator_t *comm)
{
    size_t size;
    ompi_datatype_type_size(rdtype, &size);
    const size_t ranks = (size_t)ompi_comm_size(comm);
    const bool in_place = MPI_IN_PLACE == sbuf;
    const bool dense = is_dense(rdtype, rcount * ranks) && (in_place || is_dense(sdtype, scount));
    describe_bytes(call, HETCOLL_ALLGATHER, in_place ? rbuf : sbuf, rbuf, rcount * size * ranks,
                   dense, 0);
    return 0 != call->count;
}

int mca_coll_hetcoll_tell(int collective, size_t bytes, int root, struct ompi_communicator_t *comm,
                          mca_coll_base_module_t *base)
{
    unsigned number;
    mca_coll_hetcoll_module_t *module = mca_coll_hetcoll_own_module(base, comm);
    return mca_coll_hetcoll_count(module, &number)
               ? mca_coll_hetcoll_handed_on(
                     hetcoll_hand_on(module->told, collective, bytes, root, number))
               : MCA_COLL_HETCOLL_NOT_OURS;
}

static int serve_large(mca_coll_base_module_t *base, struct ompi_communicator_t *comm,
                       struct hetcoll_call *call)
{
    mca_coll_hetcoll_module_t *module = mca_coll_hetcoll_own_module(base, comm);
    if (NULL == module || 1 == ompi_comm_size(comm) || module->delegates) {
        return MCA_COLL_HETCOLL_NOT_OURS;
    }
    if (HETCOLL_STATE_NEW == module->state) {
        ++module->collective_calls;
        call->number = ++module->calls;
        if (OMPI_SUCCESS != mca_coll_hetcoll_first_call(module, true) && module->collectives) {
            return mca_coll_hetcoll_refuse_blocking(module, call->number);
        }
    } else if (module->collectives) {
        call->number = ++module->calls;
    }
    return HETCOLL_STATE_READY == module->state && module->collectives
               ? run(module, call)
               : MCA_COLL_HETCOLL_NOT_OURS; /* some rank does not come here */
}

static bool is_large(size_t bytes) { return HETCOLL_LEAST_COLLECTIVE <= bytes; }

int mca_coll_hetcoll_own_bcast(void *buffer, hetcoll_count_t count, struct ompi_datatype_t *dtype,
                               int root, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *base)
{
    size_t size;
    ompi_datatype_type_size(dtype, &size);
    if (!is_large((size_t)count * size)) {
        return mca_coll_hetcoll_tell_data(HETCOLL_BCAST, count, dtype, root, comm, base);
    }
    struct hetcoll_call call;
    (void)mca_coll_hetcoll_describe_bcast(&call, buffer, (size_t)count, dtype, root);
    return serve_large(base, comm, &call);
}

int mca_coll_hetcoll_own_allgather(const void *sbuf, hetcoll_count_t scount,
                                   struct ompi_datatype_t *sdtype, void *rbuf,
                                   hetcoll_count_t rcount, struct ompi_datatype_t *rdtype,
                                   struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    size_t size;
    ompi_datatype_type_size(rdtype, &size);
    const size_t bytes = (size_t)rcount * size * (size_t)ompi_comm_size(comm);
    if (!is_large(bytes)) {
        return 0 == bytes ? MCA_COLL_HETCOLL_NOT_OURS
                          : mca_coll_hetcoll_tell(HETCOLL_ALLGATHER, bytes, 0, comm, base);
    }
    struct hetcoll_call call;
    (void)mca_coll_hetcoll_describe_allgather(&call, sbuf, (size_t)scount, sdtype, rbuf,
                                              (size_t)rcount, rdtype, comm);
    return serve_large(base, comm, &call);
}

static int serve_reduction(mca_coll_base_module_t *base, struct ompi_communicator_t *comm,
                           int collective, const void *sbuf, void *rbuf, size_t count,
                           struct ompi_datatype_t *dtype, struct ompi_op_t *op, int root, bool own)
{
    mca_coll_hetcoll_module_t *module = mca_coll_hetcoll_own_module(base, comm);
    if (OPAL_UNLIKELY(NULL == module)) {
        return MCA_COLL_HETCOLL_NOT_OURS;
    }
    struct hetcoll_call call;
    const bool reduces = mca_coll_hetcoll_describe_reduce(
        module, &call, (enum hetcoll_collective)collective, sbuf, rbuf, count, dtype, op, root);
    if (own && reduces && is_large(call.span)) {
        return serve_large(base, comm, &call);
    }
    return 0 != call.data_bytes && mca_coll_hetcoll_count(module, &call.number)
               ? mca_coll_hetcoll_handed_on(hetcoll_hand_on_reduction(module->told, &call))
               : MCA_COLL_HETCOLL_NOT_OURS;
}

int mca_coll_hetcoll_own_reduce(const void *sbuf, void *rbuf, hetcoll_count_t count,
                                struct ompi_datatype_t *dtype, struct ompi_op_t *op, int root,
                                struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    void *recv = ompi_comm_rank(comm) == root ? rbuf : NULL;
    return serve_reduction(base, comm, HETCOLL_REDUCE, sbuf, recv, (size_t)count, dtype, op, root,
                           true);
}

int mca_coll_hetcoll_own_reduce_scatter_block(const void *sbuf, void *rbuf, hetcoll_count_t count,
                                              struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                              struct ompi_communicator_t *comm,
                                              mca_coll_base_module_t *base)
{
    return serve_reduction(base, comm, HETCOLL_REDUCE_SCATTER, sbuf, rbuf,
                           (size_t)count * (size_t)ompi_comm_size(comm), dtype, op, 0, true);
}

/* Every rank sees all counts. Returns their sum. */
static size_t look_at_counts(hetcoll_counts_t counts, size_t bytes,
                             struct ompi_communicator_t *comm, bool *equal, int *hash)
{
    size_t sum = 0;
    uint32_t all = 0;
    *equal = true;
    for (int rank = 0; rank < ompi_comm_size(comm); ++rank) {
        const size_t count = (size_t)HETCOLL_COUNT_AT(counts, rank);
        *equal = *equal && count == (size_t)HETCOLL_COUNT_AT(counts, 0);
        sum += count;
        all = (all ^ (uint32_t)(count * bytes)) * 16777619u;
    }
    *hash = (int)all;
    return sum;
}

/* By the core if counts are equal. */
int mca_coll_hetcoll_own_reduce_scatter(const void *sbuf, void *rbuf, hetcoll_counts_t counts,
                                        struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                        struct ompi_communicator_t *comm,
                                        mca_coll_base_module_t *base)
{
    bool equal;
    int hash;
    const size_t count = look_at_counts(counts, 1, comm, &equal, &hash);
    return serve_reduction(base, comm, HETCOLL_REDUCE_SCATTER, sbuf, rbuf, count, dtype, op,
                           equal ? 0 : hash, equal);
}

int mca_coll_hetcoll_tell_data(int collective, hetcoll_count_t count, struct ompi_datatype_t *dtype,
                               int root, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *base)
{
    size_t size;
    ompi_datatype_type_size(dtype, &size);
    return 0 == count || 0 == size
               ? MCA_COLL_HETCOLL_NOT_OURS
               : mca_coll_hetcoll_tell(collective, (size_t)count * size, root, comm, base);
}

int mca_coll_hetcoll_tell_allgatherv(hetcoll_counts_t counts, struct ompi_datatype_t *dtype,
                                     struct ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    bool equal;
    int hash;
    size_t size;
    ompi_datatype_type_size(dtype, &size);
    const size_t bytes = size * look_at_counts(counts, size, comm, &equal, &hash);
    return 0 == bytes ? MCA_COLL_HETCOLL_NOT_OURS
                      : mca_coll_hetcoll_tell(HETCOLL_ALLGATHERV, bytes, hash, comm, base);
}

int mca_coll_hetcoll_tell_scan(int collective, hetcoll_count_t count, struct ompi_datatype_t *dtype,
                               struct ompi_op_t *op, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *base)
{
    return serve_reduction(base, comm, collective, NULL, NULL, (size_t)count, dtype, op, 0, false);
}
