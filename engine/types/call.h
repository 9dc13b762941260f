/* One collective call, in plain types: what, on what, and how it ended. */
#ifndef HETCOLL_ENGINE_TYPES_CALL_H
#define HETCOLL_ENGINE_TYPES_CALL_H

#include <stddef.h>

/* The element kinds and operations of base/element.h, in its order. */
enum hetcoll_kind {
    HETCOLL_INT8,
    HETCOLL_UINT8,
    HETCOLL_INT16,
    HETCOLL_UINT16,
    HETCOLL_INT32,
    HETCOLL_UINT32,
    HETCOLL_INT64,
    HETCOLL_UINT64,
    HETCOLL_FLOAT16,
    HETCOLL_BFLOAT16,
    HETCOLL_FLOAT32,
    HETCOLL_FLOAT64,
    HETCOLL_COMPLEX64,
    HETCOLL_COMPLEX128,
    HETCOLL_BOOL,
    HETCOLL_BYTE,
    HETCOLL_INT16_INT32,
    HETCOLL_INT32_INT32,
    HETCOLL_INT64_INT32,
    HETCOLL_FLOAT32_INT32,
    HETCOLL_FLOAT64_INT32,
    HETCOLL_FLOAT32_FLOAT32,
    HETCOLL_FLOAT64_FLOAT64,
    HETCOLL_FLOAT8_E4M3,
    HETCOLL_FLOAT8_E5M2,
};
enum hetcoll_op {
    HETCOLL_MAX,
    HETCOLL_MIN,
    HETCOLL_SUM,
    HETCOLL_PROD,
    HETCOLL_LAND,
    HETCOLL_BAND,
    HETCOLL_LOR,
    HETCOLL_BOR,
    HETCOLL_LXOR,
    HETCOLL_BXOR,
    HETCOLL_MAXLOC,
    HETCOLL_MINLOC,
    HETCOLL_MAX_FIRST,
    HETCOLL_MIN_FIRST,
};

/* Channels of a schedule use a tag each. */
#define HETCOLL_TAGS 32

/* Why a call on device memory was copied to the host and served there by Open MPI. */
enum hetcoll_staged_reason {
    HETCOLL_REASON_NONE,
    HETCOLL_REASON_USER_OP,    /* a user-defined op that hetcoll does not know */
    HETCOLL_REASON_TYPE,       /* no kernel reduces the type */
    HETCOLL_REASON_LAYOUT,     /* a derived type with holes, or of several types */
    HETCOLL_REASON_GPU,        /* this rank cannot use its GPU now: logged */
    HETCOLL_REASON_OTHER_RANK, /* another rank said so */
    HETCOLL_REASON_COLLECTIVE, /* not an Allreduce, and hetcoll has no schedule for it */
};

/* Largest elements of user-defined ops that hetcoll may know: 8-bit floats, half and bfloat16. */
#define HETCOLL_USER_OP_BYTES 2u
/* The kind of a call. All but the first are calls of hetcoll_collective(). */
enum hetcoll_collective {
    HETCOLL_ALLREDUCE,
    HETCOLL_BCAST,          /* recv equals send: the vector */
    HETCOLL_REDUCE,         /* recv is null but at the root, whose send may equal it */
    HETCOLL_ALLGATHER,      /* recv: the vector; send: this rank's share, or equal to recv */
    HETCOLL_REDUCE_SCATTER, /* send: the vector; recv: this rank's share, or equal to send */
};
/* None of these: of hetcoll_comm_refuse(). Its root says why. */
#define HETCOLL_REFUSED (-1)
enum hetcoll_why_refused { HETCOLL_HAS_NO_MEMORY, HETCOLL_CAPTURES };

/* Calls that Open MPI serves, of which ranks tell each other alone: hetcoll_hand_on(). */
enum hetcoll_handed_on {
    HETCOLL_BARRIER = HETCOLL_REDUCE_SCATTER + 1,
    HETCOLL_ALLGATHERV, /* root: a hash of the counts */
    HETCOLL_ALLTOALL,
    HETCOLL_ALLTOALLV,
    HETCOLL_ALLTOALLW,
    HETCOLL_EXSCAN,
    HETCOLL_GATHER,
    HETCOLL_GATHERV,
    HETCOLL_SCAN,
    HETCOLL_SCATTER,
    HETCOLL_SCATTERV,
};
/* Arguments of hetcoll_agree_on_copies(); where a request is made, neither of them. */
#define HETCOLL_INIT_ALLREDUCE (HETCOLL_SCATTERV + 1)

/* This rank's report about the copies that it has made for a collective that was declined. */
enum hetcoll_copies { HETCOLL_COPIES_UNTOLD, HETCOLL_COPIES_MADE, HETCOLL_COPIES_FAILED };

/* A call in the order of a CUDA stream (engine/hetcoll.h). It works with what was made when the
 * stream was attached, and makes no driver call that may wait for the device: the device waits for
 * the call. */
enum hetcoll_queued {
    HETCOLL_NOT_QUEUED,
    HETCOLL_QUEUED,
    HETCOLL_ATTACHES, /* makes what the queued calls of a communicator work with; context: the
                         stream's PreparedStream */
};

/* `count` pieces of `bytes` each, every one `stride` behind the one before. They do not overlap.
 * The offset of the first is relative to a buffer. */
struct hetcoll_run {
    ptrdiff_t offset;
    size_t bytes, stride, count;
};
typedef void hetcoll_take_run(void *to, const struct hetcoll_run *run);

/* One MPI_Allreduce. Everything but the pointers is the same on all ranks. */
struct hetcoll_call {
    const void *send; /* equal to recv for MPI_IN_PLACE */
    void *recv;
    int collective;  /* enum hetcoll_collective, hetcoll_handed_on, or HETCOLL_INIT_ALLREDUCE */
    int root;        /* where one has a root; of a reduce-scatter with unequal counts their hash */
    int copies;      /* enum hetcoll_copies, of hetcoll_agree_on_copies() */
    int queued;      /* enum hetcoll_queued */
    int kind;        /* enum hetcoll_kind; negative: hetcoll does not reduce this */
    int op;          /* enum hetcoll_op; used if kind is not negative */
    int user_op;     /* the op is user-defined, on this many bytes, up to HETCOLL_USER_OP_BYTES: do
                        all ranks know it? 0: it is none */
    unsigned number; /* of this rank's calls, see Differences::kNumber; 0: not counted */
    size_t
        count; /* elements of `kind`; in shares: of all of them together, a multiple of the ranks */
    ptrdiff_t gap;     /* first byte of data, relative to the buffer */
    size_t span;       /* bytes from there to the end of the data */
    int dense;         /* every byte of the span is data: not where a type has holes, or a kind
                          of pair padding */
    size_t data_bytes; /* of the data; used if it is not dense */
    int reason;        /* enum hetcoll_staged_reason, if kind is negative */
    int tag;           /* for p2p: this one and the HETCOLL_TAGS - 1 below are the call's own */
    /* Open MPI's allreduce (the previous module's) of the same call on host memory. Zero or an
     * error code, which hetcoll_allreduce() hands on. Blocking calls only. */
    int (*previous_allreduce)(void *context, const void *send, void *recv);
    /* Gives `take` the runs of data of a buffer. Set if kind is negative and it is not dense. */
    void (*tell_runs)(void *context, hetcoll_take_run *take, void *to);
    /* A user-defined op on host memory: inout = in op inout. Nonblocking calls only: what these
     * cannot reduce on GPUs they reduce by their own schedules on the host. */
    void (*reduce)(void *context, const void *in, void *inout, size_t count);
    void *context;
};

enum {
    HETCOLL_SUCCESS = 0,
    /* Negative codes are the p2p table's or previous_allreduce's own. */
    HETCOLL_ERROR_DEVICE = 1,    /* a driver call failed, here or on another rank; logged */
    HETCOLL_ERROR_NO_MEMORY = 2, /* logged */
    /* hetcoll_collective(): not all ranks have device memory and can use it, so on every rank the
     * call is left to the caller. */
    HETCOLL_DECLINED = 3,
    /* The same, and some rank has device memory: before the call each rank copies what it reads to
     * the host, and then calls hetcoll_agree_on_copies(). */
    HETCOLL_DECLINED_TO_STAGE = 10,
    HETCOLL_ERROR_RANGE = 4, /* coll_hetcoll_fixed_point: a rank's element has none; logged */
    /* Ranks call differently, and all get this: coll_hetcoll_check. Logged. */
    HETCOLL_ERROR_COLLECTIVE = 5,
    HETCOLL_ERROR_TYPE = 6,
    HETCOLL_ERROR_OP = 7,
    HETCOLL_ERROR_ROOT = 8,
    HETCOLL_ERROR_COUNT = 9,
};

#endif
