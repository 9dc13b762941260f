/* The other collectives that the core serves. Each returns how the call ends, or one of these
 * codes, on all ranks alike, where the previous module is to serve it. */
#ifndef MCA_COLL_HETCOLL_COLLECTIVES_H
#define MCA_COLL_HETCOLL_COLLECTIVES_H

#include "coll_hetcoll_staged.h"

#define MCA_COLL_HETCOLL_NOT_OURS (-2000000) /* no error code of Open MPI */
/* The ranks meet when they have copied what they read: mca_coll_hetcoll_agree_on_copies(). */
#define MCA_COLL_HETCOLL_TOGETHER (-2000001)
#define MCA_COLL_HETCOLL_TOLD \
    (-2000002) /* as NOT_OURS, and the other ranks of the node know of it */
static inline bool mca_coll_hetcoll_is_over(int served)
{
    return MCA_COLL_HETCOLL_NOT_OURS < served;
}

/* The error of the communicator's last call that ended so. OMPI_SUCCESS: no rank has failed. */
int mca_coll_hetcoll_agree_on_copies(mca_coll_base_module_t *base, struct ompi_communicator_t *comm,
                                     bool failed);

/* A call as the core sees it; `recv` is null but at a reduce's root, `count` that of the whole
 * vector. False: hetcoll has no schedule for it, as all ranks find alike. */
bool mca_coll_hetcoll_describe_bcast(struct hetcoll_call *call, void *buffer, size_t count,
                                     struct ompi_datatype_t *dtype, int root);
bool mca_coll_hetcoll_describe_allgather(struct hetcoll_call *call, const void *sbuf, size_t scount,
                                         struct ompi_datatype_t *sdtype, void *rbuf, size_t rcount,
                                         struct ompi_datatype_t *rdtype,
                                         struct ompi_communicator_t *comm);
/* Inline, because a small reduction that Open MPI serves has few instructions to spare. */
static inline bool mca_coll_hetcoll_describe_reduce(mca_coll_hetcoll_module_t *module,
                                                    struct hetcoll_call *call,
                                                    enum hetcoll_collective collective,
                                                    const void *sbuf, void *rbuf, size_t count,
                                                    struct ompi_datatype_t *dtype,
                                                    struct ompi_op_t *op, int root)
{
    *call = (struct hetcoll_call){
        .send = MPI_IN_PLACE == sbuf ? rbuf : sbuf,
        .recv = rbuf,
        .collective = (int)collective,
        .root = root,
    };
    mca_coll_hetcoll_describe_again(module, call, count, dtype, op, false);
    return 0 <= call->kind && 0 == call->user_op;
}

int mca_coll_hetcoll_own_bcast(void *buffer, hetcoll_count_t count, struct ompi_datatype_t *dtype,
                               int root, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *base);
int mca_coll_hetcoll_own_allgather(const void *sbuf, hetcoll_count_t scount,
                                   struct ompi_datatype_t *sdtype, void *rbuf,
                                   hetcoll_count_t rcount, struct ompi_datatype_t *rdtype,
                                   struct ompi_communicator_t *comm, mca_coll_base_module_t *base);
int mca_coll_hetcoll_own_reduce(const void *sbuf, void *rbuf, hetcoll_count_t count,
                                struct ompi_datatype_t *dtype, struct ompi_op_t *op, int root,
                                struct ompi_communicator_t *comm, mca_coll_base_module_t *base);
int mca_coll_hetcoll_own_reduce_scatter_block(const void *sbuf, void *rbuf, hetcoll_count_t count,
                                              struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                              struct ompi_communicator_t *comm,
                                              mca_coll_base_module_t *base);
int mca_coll_hetcoll_own_reduce_scatter(const void *sbuf, void *rbuf, hetcoll_counts_t counts,
                                        struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                        struct ompi_communicator_t *comm,
                                        mca_coll_base_module_t *base);

/* Ranks count their calls, if all of them come here with theirs: with those that have data, because
 * Open MPI ends others itself. Whether a call has data is the same on all ranks; where each has a
 * count of its own (Gatherv, Scatterv, Alltoallv and Alltoallw) Open MPI 4.1, 5.0 and 6.0 end none.
 * False: the core has nothing to do with this call. */
static inline bool mca_coll_hetcoll_count(mca_coll_hetcoll_module_t *module, unsigned *number)
{
    if (OPAL_LIKELY(NULL != module && NULL != module->told)) {
        *number = ++module->calls;
        return true;
    }
    if (NULL != module && HETCOLL_STATE_NEW == module->state) { /* the core has none yet */
        ++module->collective_calls;
        ++module->calls;
    }
    return false;
}

static inline int mca_coll_hetcoll_handed_on(int result)
{
    return OPAL_LIKELY(HETCOLL_SUCCESS == result) ? MCA_COLL_HETCOLL_TOLD
                                                  : mca_coll_hetcoll_error_from_core(result);
}

/* Calls that the previous module serves: an error if a rank is seen to call differently. Bytes as
 * all ranks of a right program have them, 0: each as it likes; root 0: it has none. */
int mca_coll_hetcoll_tell(int collective, size_t bytes, int root, struct ompi_communicator_t *comm,
                          mca_coll_base_module_t *base);
/* These are told of where there are data. */
int mca_coll_hetcoll_tell_data(int collective, hetcoll_count_t count, struct ompi_datatype_t *dtype,
                               int root, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *base);
int mca_coll_hetcoll_tell_allgatherv(hetcoll_counts_t counts, struct ompi_datatype_t *dtype,
                                     struct ompi_communicator_t *comm,
                                     mca_coll_base_module_t *base);
int mca_coll_hetcoll_tell_scan(int collective, hetcoll_count_t count, struct ompi_datatype_t *dtype,
                               struct ompi_op_t *op, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *base);

#endif
