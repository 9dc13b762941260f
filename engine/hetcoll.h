/* The one boundary between the component (C, Open MPI's types) and the core (C++). Plain C; nothing
 * of Open MPI, CUDA or C++ crosses it, and no exception. */
#ifndef HETCOLL_ENGINE_HETCOLL_H
#define HETCOLL_ENGINE_HETCOLL_H

#include "base/p2p.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
/* Nonzero if hetcoll reduces the pair itself; and the bytes of one element. */
int hetcoll_is_reduced(int op, int kind);
size_t hetcoll_element_bytes(int kind);

/* The component's parameters, read once. Strings are copied. */
struct hetcoll_settings {
    const char *pointer_cache; /* "validated", "hooked", "off" */
    const char *algorithm;     /* "auto" or a name, see tuning/choice.h */
    const char *node;          /* ranks with different words count as different nodes */
    const char *topology_file; /* instead of a probe; "" for none */
    const char *tuning_table;  /* "auto", "none" or a path */
    int ipc;                   /* 0: peers' memory is never mapped */
    int collectives;           /* others than allreduce are handed to hetcoll_collective() */
    int adapt_chunk;           /* the first calls of a kind look for the best chunk */
    const char *shares;        /* see tuning/rank_shares.h */
    int skew;                  /* look for a rank that comes late, and let the others begin */
    int reproducible;          /* sums in the order of the ranks, whatever the size and placement */
    int fixed_point;           /* bits behind the point of floats that are added; 0: off */
    const char *aggregators;   /* "host:port,..."; "": none */
    const char *aggregator_key; /* a file */
    int aggregator_window;      /* messages */
    size_t aggregator_copy;     /* bytes that a call in place keeps of its input */
    int recognize_ops;          /* 0: user-defined ops are left to Open MPI */
    const char *user_ops;       /* see engine/user_ops.h */
    size_t small_limit;         /* bytes; larger calls begin with an agreement */
    size_t chunk_bytes;         /* most bytes in one message; 0: by the built-in rules */
    int sync_context;           /* wait for the whole context's work before reading a buffer */
    int local_rank; /* what concerns all ranks of a node alike is logged by rank 0 of it */
    int priority;   /* as published: ranks with different ones would not all use hetcoll */
    int verbose;
    const char *trace;   /* a file, see engine/trace.h; "": none */
    int rank;            /* in MPI_COMM_WORLD, for the name of the trace */
    size_t max_memory;   /* pinned and device memory held; 0: no bound */
    size_t max_mapped;   /* memory of peers that stays mapped between calls; 0: the default */
    size_t stage_pinned; /* most bytes of a buffer that are staged in pinned memory */
    void (*log)(int level, const char *line);
};
#define HETCOLL_LEAST_MAX_MEMORY (256u * 1024u)

/* Which process, and where: transport/node_identity.h. */
struct hetcoll_identity {
    uint64_t host, start_time;
    int32_t pid, reserved;
    uint64_t machine;
};

/* What a process publishes to all others at its start. Fixed layout: it crosses nodes. */
struct hetcoll_facts {
    uint32_t protocol; /* HETCOLL_PROTOCOL; 0 in merged facts: the ranks have no common one */
    uint32_t may_have_gpu;
    uint32_t small_limit; /* bytes */
    uint32_t chunk_bytes; /* 0: by the rules */
    uint32_t algorithm;   /* 0: by the rules, else 1 + enum Algorithm */
    int32_t priority;     /* of the component */
    uint32_t ipc;         /* peers' memory may be mapped */
    uint32_t adapt_chunk;
    uint32_t reproducible;
    uint32_t tables_differ;       /* merged: the ranks have not all read the same table */
    uint32_t fixed_point;         /* bits; 0: off */
    uint32_t fixed_point_differs; /* merged: the ranks have not all the same bits */
    uint32_t aggregators_differ;  /* merged: the ranks have not all the same aggregators */
    uint32_t slot_bytes;          /* of a bounce with few channels: bounds every message */
    uint32_t collectives; /* merged: every rank hands others than allreduce to the core too */
    uint32_t skew;
    uint64_t table_hash;  /* of the tuning table; 0: none */
    uint64_t user_ops;    /* known by symbol, a hash; 0: none, or not the same */
    uint64_t shares;      /* hash of the setting; 0: off; merged: HETCOLL_SHARES_DIFFER */
    uint64_t aggregators; /* a hash of their list; 0: none */
    struct hetcoll_identity identity; /* not merged */
};
#define HETCOLL_PROTOCOL 4u
#define HETCOLL_SHARES_DIFFER UINT64_MAX

/* Largest value of small_limit. */
#define HETCOLL_MAX_SMALL_LIMIT (16u * 1024u)

/* Channels of a schedule use a tag each. */
#define HETCOLL_TAGS 14

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

#define HETCOLL_USER_OP_BYTES 2u
/* What a call is. All but the first are calls of hetcoll_collective(). */
enum hetcoll_collective {
    HETCOLL_ALLREDUCE,
    HETCOLL_BCAST,          /* recv equals send: the vector */
    HETCOLL_REDUCE,         /* recv is null but at the root, whose send may equal it */
    HETCOLL_ALLGATHER,      /* recv: the vector; send: this rank's share, or equal to recv */
    HETCOLL_REDUCE_SCATTER, /* send: the vector; recv: this rank's share, or equal to send */
};

/* One MPI_Allreduce. Everything but the pointers is the same on all ranks. */
struct hetcoll_call {
    const void *send; /* equal to recv for MPI_IN_PLACE */
    void *recv;
    int collective; /* enum hetcoll_collective */
    int root;       /* of a broadcast or a reduce */
    int kind;       /* enum hetcoll_kind; negative: hetcoll does not reduce this */
    int op;         /* enum hetcoll_op; used if kind is not negative */
    int user_op;    /* the op is user-defined, on HETCOLL_USER_OP_BYTES: do all ranks know it? */
    size_t
        count; /* elements of `kind`; in shares: of all of them together, a multiple of the ranks */
    ptrdiff_t gap; /* first byte of data, relative to the buffer */
    size_t span;   /* bytes from there to the end of the data */
    int dense;     /* every byte of the span is data */
    int reason;    /* enum hetcoll_staged_reason, if kind is negative */
    int tag;       /* for p2p: this one and the HETCOLL_TAGS - 1 below are the call's own */
    /* Open MPI's allreduce (the previous module's) of the same call on host memory. Zero or an
     * error code, which hetcoll_allreduce() hands on. Blocking calls only. */
    int (*host_allreduce)(void *context, const void *send, void *recv);
    /* A user-defined op on host memory: inout = in op inout. Nonblocking calls only: what these
     * cannot reduce on GPUs they reduce by their own schedules on the host. */
    void (*reduce)(void *context, const void *in, void *inout, size_t count);
    void *context;
};

enum {
    HETCOLL_SUCCESS = 0,
    /* Negative codes are the p2p table's or host_allreduce's own. */
    HETCOLL_ERROR_DEVICE = 1,    /* a driver call failed, here or on another rank; logged */
    HETCOLL_ERROR_NO_MEMORY = 2, /* logged */
    /* hetcoll_collective(): not all ranks have device memory and can use it, so on every rank the
     * call is left to the caller. */
    HETCOLL_DECLINED = 3,
    HETCOLL_ERROR_RANGE = 4, /* coll_hetcoll_fixed_point: a rank's element has none; logged */
};

/* Counters of a process since its start. */
enum hetcoll_counter {
    HETCOLL_CALLS_PREVIOUS, /* on host memory, left to the previous module; where no rank
                               can have a GPU hetcoll is not even called */
    HETCOLL_CALLS_STAGED,
    HETCOLL_CALLS_RECURSIVE_DOUBLING, /* from here on in the order of enum Algorithm */
    HETCOLL_CALLS_RABENSEIFNER,
    HETCOLL_CALLS_RING,
    HETCOLL_CALLS_ONE_SHOT,
    HETCOLL_CALLS_TWO_SHOT,
    HETCOLL_CALLS_LEADER,
    HETCOLL_CALLS_TREE,
    HETCOLL_CALLS_HIERARCHICAL,
    HETCOLL_CALLS_SMALL, /* Algorithm::kHost */
    HETCOLL_CALLS_COPY_IN,
    HETCOLL_CALLS_ORDERED,
    HETCOLL_CALLS_IN_NETWORK,
    HETCOLL_CALLS_WEIGHTED,
    HETCOLL_CALLS_COLLECTIVE, /* that were no allreduce, by hetcoll's own schedules */
    HETCOLL_CALLS_EARLY,      /* that this rank has begun without the one that comes last */
    HETCOLL_CALLS_FAILED,
    HETCOLL_AGREEMENTS,   /* meetings without a payload */
    HETCOLL_ALLOCATIONS,  /* of bounce and staging memory */
    HETCOLL_BYTES_BOUNCE, /* sent through pinned or host memory */
    HETCOLL_BYTES_DIRECT, /* sent from device memory */
    HETCOLL_BYTES_MAPPED, /* read from or written to peers' memory */
    HETCOLL_MAPPINGS,     /* of peers' memory made */
    HETCOLL_POINTER_HITS,
    HETCOLL_POINTER_MISSES,
    HETCOLL_POINTER_INVALIDATIONS,
    HETCOLL_POINTER_QUERIES, /* driver calls made to classify pointers */
    HETCOLL_POINTER_HOST,    /* classified as host without a driver call */
    HETCOLL_STAGED_USER_OP,  /* from here on in the order of enum hetcoll_staged_reason */
    HETCOLL_STAGED_TYPE,
    HETCOLL_STAGED_LAYOUT,
    HETCOLL_STAGED_GPU,
    HETCOLL_STAGED_OTHER_RANK,
    HETCOLL_STAGED_COLLECTIVE,
    HETCOLL_BYTES_STAGED, /* copied between device and host for these */
    HETCOLL_NS_PREVIOUS,  /* nanoseconds, from here on in the order of the calls above */
    HETCOLL_NS_STAGED,
    HETCOLL_NS_RECURSIVE_DOUBLING,
    HETCOLL_NS_RABENSEIFNER,
    HETCOLL_NS_RING,
    HETCOLL_NS_ONE_SHOT,
    HETCOLL_NS_TWO_SHOT,
    HETCOLL_NS_LEADER,
    HETCOLL_NS_TREE,
    HETCOLL_NS_HIERARCHICAL,
    HETCOLL_NS_SMALL, /* on host memory only while somebody looks: hetcoll_process_time_small() */
    HETCOLL_NS_COPY_IN,
    HETCOLL_NS_ORDERED,
    HETCOLL_NS_IN_NETWORK,
    HETCOLL_NS_WEIGHTED,
    HETCOLL_NS_PATH_BOUNCE, /* the same by the way that the data took */
    HETCOLL_NS_PATH_DIRECT,
    HETCOLL_NS_PATH_MAPPED,
    HETCOLL_NS_PATH_MIXED,
    HETCOLL_HELD_PINNED, /* bytes held now: page-locked host memory, device memory, peers' memory */
    HETCOLL_HELD_DEVICE,
    HETCOLL_HELD_MAPPED,
    HETCOLL_ARRIVAL_WAIT, /* nanoseconds, average: see tuning/arrivals.h */
    HETCOLL_LATE_RANK,    /* 1 + the rank that comes last, in the communicator that told last */
    HETCOLL_COUNTER_COUNT
};

struct hetcoll_process;
struct hetcoll_engine;

/* A process's state. Makes no CUDA call. NULL: there is none, and `message` says why. */
struct hetcoll_process *hetcoll_process_create(const struct hetcoll_settings *settings,
                                               char *message, size_t message_bytes);
void hetcoll_process_destroy(struct hetcoll_process *process);

/* Nonzero, and *op and *kind, for a user-defined op whose function hetcoll knows. `call` calls it
 * on host memory, inout = in op inout: at the first use of a function in the table, and never for
 * another. */
int hetcoll_recognize_op(struct hetcoll_process *process, void (*function)(void),
                         void (*call)(void *context, const void *in, void *inout, int count),
                         void *context, int *op, int *kind);
void hetcoll_process_facts(const struct hetcoll_process *process, struct hetcoll_facts *facts);
uint64_t hetcoll_process_counter(const struct hetcoll_process *process,
                                 enum hetcoll_counter counter);

/* Small calls on host memory are timed while more have asked for it (+1) than have ceased to (-1),
 * and while there is a trace: reading the clock twice is a fifth of such a call. */
void hetcoll_process_time_small(struct hetcoll_process *process, int change);

/* A call that the component served without an engine. */
struct hetcoll_other_call {
    const char *call; /* "allreduce", "bcast", ... */
    uint32_t comm_id;
    int rank, comm_size;
    size_t bytes;
    int kind, op; /* negative: none, or none of hetcoll's */
    int device;   /* nonzero: this rank's buffers are device memory */
    int reason;   /* enum hetcoll_staged_reason */
    uint64_t start_ns;
    int failed;
};
/* Zero if there is no trace; else the time, for start_ns. */
uint64_t hetcoll_trace_clock(const struct hetcoll_process *process);
/* Writes its line, with the time from start_ns to now. */
void hetcoll_trace_call(struct hetcoll_process *process, const struct hetcoll_other_call *call);

/* Combines the facts of two processes; associative and commutative, so that every rank gets the
 * same settings for a communicator. Without a common protocol or a GPU nobody uses it there. */
void hetcoll_facts_merge(struct hetcoll_facts *into, const struct hetcoll_facts *other);

/* Puts values that a program set while it ran in place of those that the communicator's processes
 * published. Zero, and `message` says why, for a value that is none: then the facts stay. */
int hetcoll_facts_set_algorithm(struct hetcoll_facts *facts, const char *name, char *message,
                                size_t message_bytes);
int hetcoll_facts_set_chunk_bytes(struct hetcoll_facts *facts, size_t chunk_bytes, char *message,
                                  size_t message_bytes);

/* Open MPI says that its messages carry device memory. The process tries it at its first device
 * call, by a message to itself through `self` (one rank, kept), and uses it if the bytes arrive.
 * Call before the first engine is made. */
void hetcoll_process_offer_direct(struct hetcoll_process *process, const struct hetcoll_p2p *self,
                                  int tag);

/* One communicator's state, made at its first call. `agreed` are the merged facts of its ranks,
 * facts[r] those of rank r; both are copied. */
struct hetcoll_engine *hetcoll_engine_create(struct hetcoll_process *process,
                                             const struct hetcoll_p2p *p2p,
                                             const struct hetcoll_facts *agreed,
                                             const struct hetcoll_facts *facts);
void hetcoll_engine_destroy(struct hetcoll_engine *engine);

/* Blocks until `recv` is complete for every stream. */
int hetcoll_allreduce(struct hetcoll_engine *engine, const struct hetcoll_call *call);

/* A broadcast, reduce, allgather or reduce-scatter by hetcoll's own schedules; requires several
 * ranks, a kind that is not negative, and no user_op. All ranks call it: it begins with an
 * agreement, which is worth its time from HETCOLL_LEAST_COLLECTIVE bytes of the vector on. */
#define HETCOLL_LEAST_COLLECTIVE (128u * 1024u)
int hetcoll_collective(struct hetcoll_engine *engine, const struct hetcoll_call *call);

/* ---- nonblocking and persistent calls ---- */

/* One MPI_Iallreduce, or one persistent MPI_Allreduce_init. The operations of an engine run one
 * after the other, in the order in which they were started, blocking calls among them: all ranks
 * start them in the same order. Thread safe but for calls on the same operation. */
struct hetcoll_operation;

/* `call`, with its context, lives as long as the operation; its kind is not negative or user_op is
 * set. A persistent operation keeps what it finds out about its buffers. NULL: no memory. */
struct hetcoll_operation *hetcoll_operation_create(struct hetcoll_engine *engine,
                                                   const struct hetcoll_call *call, int persistent);
/* Requires that it was not started, or is complete and persistent. HETCOLL_SUCCESS, or an error,
 * and it was not started. */
int hetcoll_operation_start(struct hetcoll_operation *operation);
/* Lets the engine's operations advance as far as they can now, unless another thread is doing so.
 * Nonzero if this one is complete, with *result as from hetcoll_allreduce(). */
int hetcoll_operation_step(struct hetcoll_operation *operation, int *result);
/* Requires that it is not started, or complete. */
void hetcoll_operation_destroy(struct hetcoll_operation *operation);

/* ---- other collectives on device memory ---- */

/* Host memory in place of the device buffers of one call that somebody else makes. Copies are
 * started and asked for; failures are told at the end, so that a rank whose copies fail takes part
 * in its collective all the same. */
struct hetcoll_stage;

enum { HETCOLL_STAGE_READ = 1, HETCOLL_STAGE_WRITTEN = 2 };

/* Zero: the buffer, whose first byte in use is at `first`, is host memory, or with leave_ordinary
 * memory that cuMemAlloc made. Positive: it was added, to *stage or, where that is NULL, to a new
 * one. Negative: no host memory. Asks the driver nothing for the stack and the heap, and before the
 * process has a CUDA context. */
int hetcoll_stage_add(struct hetcoll_process *process, struct hetcoll_stage **stage, void *buffer,
                      const void *first, int leave_ordinary);
/* A piece of the buffer that was added last, which the call reads, writes or both. */
void hetcoll_stage_piece(struct hetcoll_stage *stage, ptrdiff_t offset, size_t bytes, int use);
/* The address to use in place of that buffer's, which has a piece. NULL: no host memory. */
void *hetcoll_stage_host(struct hetcoll_stage *stage);
/* Copies in what is read, or out what is written; complete when is_done. */
void hetcoll_stage_start(struct hetcoll_stage *stage, int use);
int hetcoll_stage_is_done(struct hetcoll_stage *stage);
/* After the copies: HETCOLL_SUCCESS, or the error of this rank, logged. "bcast" for `collective`. A
 * stage may then be used again, for the same buffers. */
int hetcoll_stage_finish(struct hetcoll_stage *stage, const char *collective);
void hetcoll_stage_destroy(struct hetcoll_stage *stage);

#ifdef __cplusplus
}
#endif
#endif
