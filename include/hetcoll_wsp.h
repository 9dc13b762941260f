/* Wave-synchronous training (WSP, Park et al., HetPipe, USENIX ATC 2020) over MPI_Iallreduce, for C
 * and C++: data parallelism in which a rank may be up to D waves ahead of the slowest one, so that
 * a step that is late now and then delays nobody. Link with -lhetcoll_wsp (pkg-config hetcoll_wsp).
 *
 *     struct hetcoll_wsp_options options = HETCOLL_WSP_OPTIONS;
 *     options.distance = 2;                               // D
 *     hetcoll_wsp_create(MPI_COMM_WORLD, weights, count, HETCOLL_WSP_FLOAT, &options, &wsp);
 *     for (...) {
 *         compute_update(weights, update);                // as -rate * gradient / ranks
 *         hetcoll_wsp_step(wsp, update);                  // changes weights
 *     }
 *     hetcoll_wsp_flush(wsp);                             // the same weights on all ranks
 *     hetcoll_wsp_free(&wsp);
 *
 * A wave is k = steps_per_wave steps. Its updates go to the other ranks as one sum when it ends.
 * In wave n of a rank, with n from 0,
 *
 *     weights = w0 + the updates of all ranks in waves 0 to n - 1 - D'
 *                  + its own updates since then,            where D' is at most D
 *
 * and step() waits only where D' would become more than D. docs/unequal-gpus.md has the rest.
 *
 * Threads. A handle belongs to one thread at a time. create, flush, rank_statistics and free are
 * collective over the communicator, and all ranks call step equally often between two flushes.
 * Handles in several threads at the same time need MPI_THREAD_MULTIPLE; a handle without
 * progress_us needs no more than the program does for itself.
 *
 * Memory. weights and update are both host memory or both device memory on a rank. For device
 * memory the library computes on the GPU and hands MPI device pointers, so it needs an Open MPI
 * with hetcoll, or one that is CUDA-aware itself. As with a call of MPI, work on the legacy default
 * stream need not be finished before a call; other work must be. After the call everything is
 * complete for every stream.
 *
 * Every function but the last two returns HETCOLL_WSP_SUCCESS or one of the codes below. After
 * HETCOLL_WSP_ERR_ARGUMENT nothing has happened; after another error of step or flush the weights
 * are undefined, and the handle can only be freed.
 */
#ifndef HETCOLL_WSP_H
#define HETCOLL_WSP_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "hetcoll_version.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HETCOLL_WSP_API __attribute__((visibility("default")))
#else
#define HETCOLL_WSP_API
#endif

enum hetcoll_wsp_code {
    HETCOLL_WSP_SUCCESS = 0,
    HETCOLL_WSP_ERR_ARGUMENT = 1,    /* an argument is wrong */
    HETCOLL_WSP_ERR_UNSUPPORTED = 2, /* correct, but not possible here */
    HETCOLL_WSP_ERR_MEMORY = 3,      /* host or device memory ran out */
    HETCOLL_WSP_ERR_DEVICE = 4,      /* a CUDA driver call failed */
    HETCOLL_WSP_ERR_MPI = 5          /* an MPI call failed, or the ranks do not agree */
};

#ifdef __cplusplus
enum hetcoll_wsp_type : int { /* so that the library may look at a wrong value */
#else
enum hetcoll_wsp_type {
#endif
                              HETCOLL_WSP_FLOAT = 0,
                              HETCOLL_WSP_DOUBLE = 1,
                              HETCOLL_WSP_FLOAT16 =
                                  2, /* IEEE 754 half: every addition is rounded to it */
                              HETCOLL_WSP_BFLOAT16 = 3
};

/* The same on all ranks. Begin with HETCOLL_WSP_OPTIONS and change what should differ. */
struct hetcoll_wsp_options {
    int distance;       /* D, from 0 on. 0: every wave waits for all ranks, as with MPI_Allreduce */
    int steps_per_wave; /* k, from 1 on */
    int in_flight;      /* steps that the program has begun and not given to step yet, the next one
                           included: 1, or the depth of its own pipeline. Only counted: HetPipe's
                           s_local + 1 */
    int deterministic;  /* not 0: D' is D and not less, so results do not depend on who is late */
    int progress_us;    /* above 0: a thread of the library calls MPI so often while sums are under
                           way, because MPI makes little progress by itself while the program
                           computes. Needs MPI_THREAD_MULTIPLE. 0: none */
};
#define HETCOLL_WSP_OPTIONS \
    {                       \
        1, 1, 1, 0, 0       \
    }

struct hetcoll_wsp_statistics { /* of this rank, since create */
    uint64_t steps;             /* calls of step */
    uint64_t waves;             /* waves that it has ended */
    uint64_t waves_applied;     /* waves of all ranks that its weights have */
    uint64_t max_staleness;     /* most updates of another rank's earlier steps that a step began
                                   without */
    uint64_t staleness_bound;   /* the most it can be: (D + 1) k + in_flight - 2 */
    double compute_ms;          /* between the library's calls: the program's own time */
    double blocked_ms;          /* waited for other ranks, or for messages */
    double mean_lead;           /* mean number of its own waves that were not complete on all ranks
                                   when it ended another one: 0 to D, 0 is the slowest rank's */
    uint64_t max_lead;
};

typedef struct hetcoll_wsp hetcoll_wsp;

/* Collective. `weights` are `count` elements; all ranks get those of rank 0 as w0. They are the
 * library's until free: the program may read them between two calls, but not write them. The
 * library takes 2 D + 3 more vectors of that size, in the same kind of memory. `options` may be
 * NULL. On an error *wsp is NULL, on all ranks. */
HETCOLL_WSP_API int hetcoll_wsp_create(MPI_Comm comm, void *weights, size_t count,
                                       enum hetcoll_wsp_type type,
                                       const struct hetcoll_wsp_options *options,
                                       hetcoll_wsp **wsp);

/* Adds `update` to the weights, and at the end of a wave starts its sum and adds what has come from
 * the others. Blocks only there, if this rank is D waves ahead of the slowest. `update` is read
 * before it returns. */
HETCOLL_WSP_API int hetcoll_wsp_step(hetcoll_wsp *wsp, const void *update);

/* Lets MPI make progress. For programs without progress_us, a few times per step. Never blocks. */
HETCOLL_WSP_API int hetcoll_wsp_progress(hetcoll_wsp *wsp);

/* Collective. Ends the wave under way and waits for all: then the weights have the same bits on all
 * ranks. Save them only here. A rank that ended fewer waves takes part in the others' with zeros.
 * Ranks may differ by D waves; beyond that a rank waits in step forever. */
HETCOLL_WSP_API int hetcoll_wsp_flush(hetcoll_wsp *wsp);

HETCOLL_WSP_API int hetcoll_wsp_get_statistics(const hetcoll_wsp *wsp,
                                               struct hetcoll_wsp_statistics *statistics);

/* Collective, any time between two waves. ranks[i] becomes rank i's statistics. */
HETCOLL_WSP_API int hetcoll_wsp_get_rank_statistics(hetcoll_wsp *wsp,
                                                    struct hetcoll_wsp_statistics *ranks);

/* Collective: flushes, frees, and sets *wsp to NULL, even if the flush fails. Call it before
 * MPI_Finalize. *wsp may be NULL. */
HETCOLL_WSP_API int hetcoll_wsp_free(hetcoll_wsp **wsp);

/* Describes a code in a few words. */
HETCOLL_WSP_API const char *hetcoll_wsp_error_string(int code);

/* Why the last call of this thread that failed did. Valid until the next one. */
HETCOLL_WSP_API const char *hetcoll_wsp_error_message(void);

#ifdef __cplusplus
}
#endif
#endif
