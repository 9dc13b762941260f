/* All collectives but Allreduce on device memory, for an Open MPI that cannot read it: what a rank
 * reads is copied to the host, the previous module does the collective there, and what it has
 * written is copied back. Each rank decides for itself, by its own buffers: no message tells
 * others. */
#ifndef MCA_COLL_HETCOLL_STAGED_H
#define MCA_COLL_HETCOLL_STAGED_H

#include "coll_hetcoll.h"

#if HETCOLL_MODULE_INSTALLS_ITSELF /* main: arrays of int or of MPI_Count */
typedef ompi_count_array_t hetcoll_counts_t;
typedef ompi_disp_array_t hetcoll_disps_t;
typedef ompi_disp_array_t hetcoll_offsets_t;
#define HETCOLL_COUNT_AT(counts, i) ompi_count_array_get(counts, i)
#define HETCOLL_DISP_AT(disps, i) ompi_disp_array_get(disps, i)
#else
typedef const int *hetcoll_counts_t;
typedef const int *hetcoll_disps_t;
typedef const MPI_Aint *hetcoll_offsets_t; /* of MPI_Neighbor_alltoallw */
#define HETCOLL_COUNT_AT(counts, i) ((size_t)(counts)[i])
#define HETCOLL_DISP_AT(disps, i) ((ptrdiff_t)(disps)[i])
#endif

/* How a side says where its blocks are. */
enum hetcoll_layout {
    HETCOLL_PLAIN,   /* `count` elements of dtype each, one block behind the other */
    HETCOLL_BLOCKS,  /* counts[i] elements at disps[i], in extents of dtype */
    HETCOLL_TYPED,   /* counts[i] elements of dtypes[i] at disps[i], in bytes */
    HETCOLL_OFFSETS, /* the same with `offsets` */
};

/* The data that this rank sends or receives. */
struct hetcoll_side {
    const void *buffer; /* the program's; host memory in its place once it is staged */
    enum hetcoll_layout layout;
    size_t count;
    struct ompi_datatype_t *dtype;
    hetcoll_counts_t counts;
    hetcoll_disps_t disps;
    hetcoll_offsets_t offsets;
    struct ompi_datatype_t *const *dtypes;
};

enum hetcoll_staged_kind {
    HETCOLL_BLOCKING,
    HETCOLL_AGREED, /* the same, and mca_coll_hetcoll_stage_together() follows */
    HETCOLL_NONBLOCKING,
    HETCOLL_PERSISTENT
};

struct hetcoll_staged_call {
    const char *name;
    struct hetcoll_side send, recv;
    int root;
    struct ompi_communicator_t *comm; /* NULL: of MPI_Reduce_local */
    int rank, size;
    bool reduces;
    int error;                                /* no host memory: the call cannot be made */
    struct hetcoll_stage *stage;              /* NULL: nothing is staged */
    struct mca_coll_hetcoll_request *request; /* of a staged call that is not blocking */
    uint64_t start_ns;
    size_t bytes; /* read, or written if that is more: for traces */
};

/* Which data of a call a collective reads and writes on this rank (coll_hetcoll_staged_data.c). */
typedef void hetcoll_staged_data_t(struct hetcoll_staged_call *call);
hetcoll_staged_data_t mca_coll_hetcoll_data_allgather, mca_coll_hetcoll_data_alltoall,
    mca_coll_hetcoll_data_bcast, mca_coll_hetcoll_data_exscan, mca_coll_hetcoll_data_gather,
    mca_coll_hetcoll_data_reduce, mca_coll_hetcoll_data_reduce_scatter,
    mca_coll_hetcoll_data_reduce_scatter_block, mca_coll_hetcoll_data_scan,
    mca_coll_hetcoll_data_scatter, mca_coll_hetcoll_data_neighbor_allgather,
    mca_coll_hetcoll_data_neighbor_alltoall, mca_coll_hetcoll_data_reduce_local;

/* coll_hetcoll_staged_call.c: before and after the previous module's function. */
/* Puts host memory in place of device memory, and unless the call is persistent copies in what is
 * read. If that cannot be copied, by any way, the job ends, unless the ranks agree: the others
 * would go on with other data. Whatever else fails but the lack of host memory, which is returned,
 * is told by the functions below: the other ranks wait for this one. */
int mca_coll_hetcoll_stage(struct hetcoll_staged_call *call, hetcoll_staged_data_t *data,
                           enum hetcoll_staged_kind kind);
/* After that, of a call whose ranks meet when they have copied: `rc` is what it returned. An error
 * on all ranks if any has failed; then the call is over. */
int mca_coll_hetcoll_stage_together(struct hetcoll_staged_call *call, int rc,
                                    mca_coll_base_module_t *base);
/* `rc` is what the previous module's function returned. Require call->stage. */
int mca_coll_hetcoll_staged_end(struct hetcoll_staged_call *call, int rc);
/* The same of a call that is not blocking: `request` is the previous module's, and becomes ours. */
int mca_coll_hetcoll_staged_end_request(struct hetcoll_staged_call *call, int rc,
                                        ompi_request_t **request);

/* coll_hetcoll_staged.c: the slots, in processes that may have a GPU. */
/* In comm_query(). */
void mca_coll_hetcoll_staged_offer(mca_coll_hetcoll_module_t *module);
/* In enable() and disable() of the module, and in its destructor. */
void mca_coll_hetcoll_staged_enable(mca_coll_hetcoll_module_t *module,
                                    struct ompi_communicator_t *comm);
void mca_coll_hetcoll_staged_disable(mca_coll_hetcoll_module_t *module,
                                     struct ompi_communicator_t *comm);
void mca_coll_hetcoll_staged_release(mca_coll_hetcoll_module_t *module);

#endif
