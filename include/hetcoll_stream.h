/* Collectives in the order of a CUDA stream, for C and C++.
 *
 *     hetcoll_stream_attach(comm, stream, bytes);                    // by all ranks; once
 *     gradients<<<..., stream>>>(vector);
 *     hetcoll_allreduce_enqueue(MPI_IN_PLACE, vector, count, MPI_FLOAT, MPI_SUM, comm, stream);
 *     step<<<..., stream>>>(vector);                                 // sees the sum
 *     ...
 *     error = hetcoll_stream_check(comm, stream);
 *     hetcoll_stream_detach(comm, stream);                           // by all ranks
 *
 * A call returns when it is queued. Its input is what the stream has written when it gets there;
 * later work of the stream sees the result. Buffers belong to the call until then: no other stream
 * and no host code may touch them.
 *
 * Nothing to link but -ldl where the C library keeps dlsym there. The header looks for hetcoll at
 * run time. Where it does not serve the communicator (another collective component, another MPI,
 * MPI's standard ABI, no MPI_THREAD_MULTIPLE), each call synchronises the stream and makes the MPI
 * call: correct, and without overlap. A CUDA-aware MPI is needed then. So a program that uses this
 * runs everywhere.
 *
 * Contract under hetcoll.
 * - MPI_Init_thread gives MPI_THREAD_MULTIPLE. A thread of hetcoll serves the calls; while some are
 *   pending it keeps a processor busy.
 * - Ranks queue the calls of a communicator in the same order, among its other collectives too,
 *   whatever their streams. One thread at a time queues on a communicator. A blocking or
 *   nonblocking collective of hetcoll on the same communicator runs behind them.
 * - Attach before anything that a queued call waits for is pending, and attach all streams before
 *   the first call: attaching allocates, maps and loads, which waits for the device. While calls
 *   are pending, other calls of the process that need something new of the driver wait until none
 *   is.
 * - Calls are queued whose copies and kernels the stream can be given beforehand: allreduces that
 *   are small, or of one node by one kernel a rank. Others synchronise the stream, and return when
 *   they are complete. With coll_hetcoll_queued_calls all these are queued too; then no thread of
 *   the process may free memory, copy synchronously or launch a kernel for the first time while one
 *   is pending: that call and hetcoll's thread would wait for each other (docs/streams.md). The
 *   same is true of an allreduce above the small limit in which some rank has host memory.
 * - Buffers are memory of the stream's own context; reductions may have host memory on some ranks.
 * - At most 64 calls are pending on a stream; the next one waits for the first of them.
 * - A graph cannot be captured: a call on a capturing stream is refused, and the capture goes on.
 * - After an error the stream goes on and the result is undefined. The next queued call or check
 *   returns it, once. Unless a call returns a code of its own arguments (capture: MPI_ERR_OTHER, a
 *   kind of element or operation that MPI does not define), it has been queued, whatever it
 *   returns.
 *
 * All functions return MPI_SUCCESS or an MPI error code, and call no error handler; what has failed
 * is on stderr. The calls that the header makes of MPI without hetcoll do as MPI says.
 */
#ifndef HETCOLL_STREAM_H
#define HETCOLL_STREAM_H

#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "hetcoll_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CUstream and cudaStream_t. 0 is the legacy default stream, or the thread's own in a program that
 * is compiled for per-thread default streams. */
struct CUstream_st;
typedef struct CUstream_st *hetcoll_stream_t;

#define HETCOLL_STREAM_UNUSED_ __attribute__((unused))

/* By all ranks of `comm`, each with a stream of its own. `most_bytes`: of the largest vector (the
 * whole one of an allgather or a reduce_scatter) that goes by the memory of peers; larger
 * allreduces, broadcasts and allgathers go by messages, larger reduces and reduce_scatters fail.
 * So much device memory is held for each stream, and once more for the communicator. 0: 64 MiB. An
 * error, on all ranks, if some rank's stream cannot be attached; the reason is on stderr. */
static int hetcoll_stream_attach(MPI_Comm comm, hetcoll_stream_t stream,
                                 size_t most_bytes) HETCOLL_STREAM_UNUSED_;
/* Waits for the stream, which must exist until then, and forgets it. By all ranks, before the
 * communicator is freed and before MPI_Finalize. The first error that nobody has been told of. */
static int hetcoll_stream_detach(MPI_Comm comm, hetcoll_stream_t stream) HETCOLL_STREAM_UNUSED_;
/* The first error of a call that is complete, which is then forgotten. */
static int hetcoll_stream_check(MPI_Comm comm, hetcoll_stream_t stream) HETCOLL_STREAM_UNUSED_;
/* Nonzero if calls on the stream may be queued; zero if all synchronise. */
static int hetcoll_stream_is_attached(MPI_Comm comm,
                                      hetcoll_stream_t stream) HETCOLL_STREAM_UNUSED_;

/* As the MPI calls of these names. MPI_IN_PLACE where MPI takes it. */
static int hetcoll_allreduce_enqueue(const void *send, void *recv, int count, MPI_Datatype type,
                                     MPI_Op op, MPI_Comm comm,
                                     hetcoll_stream_t stream) HETCOLL_STREAM_UNUSED_;
static int hetcoll_bcast_enqueue(void *buffer, int count, MPI_Datatype type, int root,
                                 MPI_Comm comm, hetcoll_stream_t stream) HETCOLL_STREAM_UNUSED_;
static int hetcoll_allgather_enqueue(const void *send, int send_count, MPI_Datatype send_type,
                                     void *recv, int recv_count, MPI_Datatype recv_type,
                                     MPI_Comm comm, hetcoll_stream_t stream) HETCOLL_STREAM_UNUSED_;
static int hetcoll_reduce_scatter_block_enqueue(const void *send, void *recv, int count,
                                                MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                                hetcoll_stream_t stream) HETCOLL_STREAM_UNUSED_;
static int hetcoll_reduce_enqueue(const void *send, void *recv, int count, MPI_Datatype type,
                                  MPI_Op op, int root, MPI_Comm comm,
                                  hetcoll_stream_t stream) HETCOLL_STREAM_UNUSED_;

/* Internal: do not use the names below. */

/* hetcoll's functions: exported by its component, whose address is also the value of the MPI_T
 * control variable HETCOLL_STREAM_VARIABLE_. The name changes with the layout. */
#define HETCOLL_STREAM_SYMBOL_ "hetcoll_stream_functions_1"
#define HETCOLL_STREAM_VARIABLE_ "coll_hetcoll_stream_functions_1"
/* A call's answer: hetcoll does not queue it, on any rank. */
#define HETCOLL_STREAM_SYNCHRONISE_ (-1)

struct hetcoll_stream_functions_1 {
    int (*attach)(MPI_Comm, hetcoll_stream_t, size_t);
    int (*detach)(MPI_Comm, hetcoll_stream_t);
    int (*check)(MPI_Comm, hetcoll_stream_t);
    int (*is_attached)(MPI_Comm, hetcoll_stream_t);
    int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, hetcoll_stream_t);
    int (*bcast)(void *, int, MPI_Datatype, int, MPI_Comm, hetcoll_stream_t);
    int (*allgather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
                     hetcoll_stream_t);
    int (*reduce_scatter_block)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm,
                                hetcoll_stream_t);
    int (*reduce)(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm, hetcoll_stream_t);
};

/* Where the component's symbols are hidden, as in a static MPI. */
static inline const struct hetcoll_stream_functions_1 *hetcoll_stream_by_variable_(void)
{
    unsigned long long address = 0;
    int level, provided, index, count;
    MPI_T_cvar_handle handle;
    MPI_Query_thread(&level); /* Open MPI 4.1 takes what is asked for here for the program's own */
    if (MPI_T_init_thread(level, &provided) != MPI_SUCCESS) {
        return NULL;
    }
    if (MPI_T_cvar_get_index(HETCOLL_STREAM_VARIABLE_, &index) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
        if (count != 1 || MPI_T_cvar_read(handle, &address) != MPI_SUCCESS) {
            address = 0;
        }
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    return (const struct hetcoll_stream_functions_1 *)(uintptr_t)address;
}

/* NULL: no hetcoll. Looked for once in each source file, after MPI_Init. The functions take Open
 * MPI's own handles: a program of MPI's standard ABI has others. (Open MPI 6 says -1 in its own
 * mpi.h.) */
static inline const struct hetcoll_stream_functions_1 *hetcoll_stream_functions_(void)
{
#if defined(MPI_ABI_VERSION) && MPI_ABI_VERSION > 0
    return NULL;
#else
    static const struct hetcoll_stream_functions_1 *found;
    static int looked;
    if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
        const struct hetcoll_stream_functions_1 *functions =
            (const struct hetcoll_stream_functions_1 *)dlsym(NULL, HETCOLL_STREAM_SYMBOL_);
        if (functions == NULL) {
            functions = hetcoll_stream_by_variable_();
        }
        __atomic_store_n(&found, functions, __ATOMIC_RELAXED);
        __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
    }
    return __atomic_load_n(&found, __ATOMIC_RELAXED);
#endif
}

static inline hetcoll_stream_t hetcoll_stream_default_(hetcoll_stream_t stream)
{
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM) || defined(__CUDA_API_PER_THREAD_DEFAULT_STREAM)
    const uintptr_t of_zero = 2; /* CU_STREAM_PER_THREAD */
#else
    const uintptr_t of_zero = 1; /* CU_STREAM_LEGACY */
#endif
    return stream != NULL ? stream : (hetcoll_stream_t)of_zero;
}

/* Without hetcoll: what the stream has to do is done when this returns. MPI_ERR_OTHER: it captures,
 * or CUDA has failed. A program without CUDA's driver has no stream to wait for. */
static inline int hetcoll_stream_synchronise_(hetcoll_stream_t stream)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int status = 0;
    int (*is_capturing)(hetcoll_stream_t, int *);
    int (*synchronise)(hetcoll_stream_t);
    if (library == NULL) {
        return MPI_SUCCESS;
    }
    *(void **)&is_capturing = dlsym(library, "cuStreamIsCapturing");
    *(void **)&synchronise = dlsym(library, "cuStreamSynchronize");
    if (synchronise == NULL ||
        (is_capturing != NULL && (is_capturing(stream, &status) != 0 || status != 0)) ||
        synchronise(stream) != 0) {
        status = -1;
    }
    dlclose(library);
    return status == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static inline int hetcoll_stream_attach(MPI_Comm comm, hetcoll_stream_t stream, size_t most_bytes)
{
    const struct hetcoll_stream_functions_1 *functions = hetcoll_stream_functions_();
    int mine = functions != NULL, all = 0;
    const int code = MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    if (code != MPI_SUCCESS || !all) {
        return code;
    }
    return functions->attach(comm, hetcoll_stream_default_(stream), most_bytes);
}

static inline int hetcoll_stream_detach(MPI_Comm comm, hetcoll_stream_t stream)
{
    const struct hetcoll_stream_functions_1 *functions = hetcoll_stream_functions_();
    return functions != NULL ? functions->detach(comm, hetcoll_stream_default_(stream))
                             : MPI_SUCCESS;
}

static inline int hetcoll_stream_check(MPI_Comm comm, hetcoll_stream_t stream)
{
    const struct hetcoll_stream_functions_1 *functions = hetcoll_stream_functions_();
    return functions != NULL ? functions->check(comm, hetcoll_stream_default_(stream))
                             : MPI_SUCCESS;
}

static inline int hetcoll_stream_is_attached(MPI_Comm comm, hetcoll_stream_t stream)
{
    const struct hetcoll_stream_functions_1 *functions = hetcoll_stream_functions_();
    return functions != NULL && functions->is_attached(comm, hetcoll_stream_default_(stream));
}

/* Queues the call, or synchronises and makes it. */
#define HETCOLL_STREAM_CALL_(queued, made)                                                 \
    do {                                                                                   \
        const struct hetcoll_stream_functions_1 *functions_ = hetcoll_stream_functions_(); \
        const hetcoll_stream_t on_ = hetcoll_stream_default_(stream);                      \
        int code_ = functions_ != NULL ? functions_->queued : HETCOLL_STREAM_SYNCHRONISE_; \
        if (code_ == HETCOLL_STREAM_SYNCHRONISE_) {                                        \
            code_ = hetcoll_stream_synchronise_(on_);                                      \
            if (code_ == MPI_SUCCESS) {                                                    \
                code_ = made;                                                              \
            }                                                                              \
        }                                                                                  \
        return code_;                                                                      \
    } while (0)

static inline int hetcoll_allreduce_enqueue(const void *send, void *recv, int count,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                            hetcoll_stream_t stream)
{
    HETCOLL_STREAM_CALL_(allreduce(send, recv, count, type, op, comm, on_),
                         MPI_Allreduce(send, recv, count, type, op, comm));
}

static inline int hetcoll_bcast_enqueue(void *buffer, int count, MPI_Datatype type, int root,
                                        MPI_Comm comm, hetcoll_stream_t stream)
{
    HETCOLL_STREAM_CALL_(bcast(buffer, count, type, root, comm, on_),
                         MPI_Bcast(buffer, count, type, root, comm));
}

static inline int hetcoll_allgather_enqueue(const void *send, int send_count,
                                            MPI_Datatype send_type, void *recv, int recv_count,
                                            MPI_Datatype recv_type, MPI_Comm comm,
                                            hetcoll_stream_t stream)
{
    HETCOLL_STREAM_CALL_(
        allgather(send, send_count, send_type, recv, recv_count, recv_type, comm, on_),
        MPI_Allgather(send, send_count, send_type, recv, recv_count, recv_type, comm));
}

static inline int hetcoll_reduce_scatter_block_enqueue(const void *send, void *recv, int count,
                                                       MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                                                       hetcoll_stream_t stream)
{
    HETCOLL_STREAM_CALL_(reduce_scatter_block(send, recv, count, type, op, comm, on_),
                         MPI_Reduce_scatter_block(send, recv, count, type, op, comm));
}

static inline int hetcoll_reduce_enqueue(const void *send, void *recv, int count, MPI_Datatype type,
                                         MPI_Op op, int root, MPI_Comm comm,
                                         hetcoll_stream_t stream)
{
    HETCOLL_STREAM_CALL_(reduce(send, recv, count, type, op, root, comm, on_),
                         MPI_Reduce(send, recv, count, type, op, root, comm));
}

#ifdef __cplusplus
}
#endif
#endif
