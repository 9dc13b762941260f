/* The one boundary between the component (C, Open MPI's types) and the core (C++). Plain C; nothing
 * of Open MPI, CUDA or C++ crosses it, and no exception. */
#ifndef HETCOLL_ENGINE_HETCOLL_H
#define HETCOLL_ENGINE_HETCOLL_H

#include "base/p2p.h"
#include "engine/types/call.h"
#include "engine/types/counters.h"
#include "engine/types/facts.h"
#include "engine/types/settings.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Nonzero if hetcoll reduces the pair itself; and the bytes of one element. */
int hetcoll_is_reduced(int op, int kind);
size_t hetcoll_element_bytes(int kind);
/* Nonzero for a kind of pair with bytes that are neither value nor index. */
int hetcoll_has_padding(int kind);

struct hetcoll_process;
struct hetcoll_comm;
struct hetcoll_log_file;

/* The file of coll_hetcoll_verbose_file; `pattern` may have %r for the rank, %p for the process id.
 * NULL: it cannot be written, and `message` says why. */
struct hetcoll_log_file *hetcoll_log_file_open(const char *pattern, int rank, char *message,
                                               size_t message_bytes);
/* Adds a line. Zero: it is not in the file, nor will a later one be. */
int hetcoll_log_file_write(struct hetcoll_log_file *file, const char *line);
void hetcoll_log_file_close(struct hetcoll_log_file *file);

/* Sets one of the settings, named without "coll_hetcoll_", to what a user has written. 1: that is
 * right. Else the setting has its default, a text that is a constant, and `message` says what is
 * wrong; 0: the job runs so. -1: results would change, it must not. */
int hetcoll_set_parameter(struct hetcoll_settings *settings, const char *name, const char *text,
                          char *message, size_t message_bytes);

/* A process's state. Makes no CUDA call. NULL: there is none, and `message` says why. */
struct hetcoll_process *hetcoll_process_create(const struct hetcoll_settings *settings,
                                               char *message, size_t message_bytes);
void hetcoll_process_destroy(struct hetcoll_process *process);

/* A rank that ends a call by itself, because it has no memory, leaves the others waiting. So what
 * the component allocates in calls may come from the process's reserve: calloc(1, bytes), for
 * free(). Nonzero from hetcoll_give_up_reserve(): some other allocation may be tried again. */
void *hetcoll_allocate(size_t bytes);
int hetcoll_give_up_reserve(void);

/* Nonzero, and *op and *kind, for a user-defined op whose function hetcoll knows. `call` calls it
 * on host memory, inout = in op inout: at the first use of a function in the table, and never for
 * another. */
int hetcoll_recognize_op(struct hetcoll_process *process, void (*function)(void),
                         void (*call)(void *context, const void *in, void *inout, int count),
                         void *context, int *op, int *kind);
void hetcoll_process_facts(const struct hetcoll_process *process, struct hetcoll_facts *facts);
uint64_t hetcoll_process_counter(const struct hetcoll_process *process,
                                 enum hetcoll_counter counter);

/* Small calls on host memory are timed, and told of, while more have asked for it (+1) than have
 * ceased to (-1), and while there is a trace: reading the clock twice is a fifth of such a call. */
void hetcoll_process_time_small(struct hetcoll_process *process, int change);

/* A call that the component served without a communicator of the core. */
struct hetcoll_other_call {
    const char *call; /* "allreduce", "bcast", ... */
    uint32_t comm_id;
    const char *tag; /* as of hetcoll_comm_set_tag(), or NULL */
    int rank, comm_size;
    size_t bytes;
    int kind, op; /* negative: none, or none of hetcoll's */
    int device;   /* nonzero: this rank's buffers are device memory */
    int reason;   /* enum hetcoll_staged_reason */
    uint64_t start_ns;
    int failed;
};
/* Zero if nobody asks for times; else the time, for start_ns. */
uint64_t hetcoll_trace_clock(const struct hetcoll_process *process);
/* Tells of it as of a call that has ended, with the time from start_ns to now. */
void hetcoll_trace_call(struct hetcoll_process *process, const struct hetcoll_other_call *call);

/* Puts values that a program set while it ran in place of those that the communicator's processes
 * published. Zero, and `message` says why, for a value that is none: then the facts stay. */
int hetcoll_facts_set_algorithm(struct hetcoll_facts *facts, const char *name, char *message,
                                size_t message_bytes);
int hetcoll_facts_set_chunk_bytes(struct hetcoll_facts *facts, size_t chunk_bytes, char *message,
                                  size_t message_bytes);

/* Open MPI says that its messages carry device memory. The process tries it at its first device
 * call, by a message to itself through `self` (one rank, kept), and uses it if the bytes arrive.
 * Call before the first communicator is made. */
void hetcoll_process_offer_direct(struct hetcoll_process *process, const struct hetcoll_p2p *self,
                                  int tag);

/* One communicator's state, made at its first call. `agreed` are the merged facts of its ranks,
 * facts[r] those of rank r; both are copied. */
struct hetcoll_comm *hetcoll_comm_create(struct hetcoll_process *process,
                                         const struct hetcoll_p2p *p2p,
                                         const struct hetcoll_facts *agreed,
                                         const struct hetcoll_facts *facts);
void hetcoll_comm_destroy(struct hetcoll_comm *comm);

/* The program's name of the communicator, for the trace: printable, without quotes. Before its
 * first call; `tag` lives as long as the communicator. NULL: it has not said. */
void hetcoll_comm_set_tag(struct hetcoll_comm *comm, const char *tag);

/* From now on allreduces wait, before they touch device memory, for what this CUstream has to do
 * when they start, in place of the legacy stream. `named` 0: they wait for that again. Local. */
void hetcoll_comm_name_stream(struct hetcoll_comm *comm, int named, void *stream);

/* Blocks until `recv` is complete for every stream. */
int hetcoll_allreduce(struct hetcoll_comm *comm, const struct hetcoll_call *call);

/* A broadcast, reduce, allgather or reduce-scatter by hetcoll's own schedules; requires several
 * ranks, a kind that is not negative, and no user_op. All ranks call it: it begins with an
 * agreement, which is worth its time from HETCOLL_LEAST_COLLECTIVE bytes of the vector on. */
#define HETCOLL_LEAST_COLLECTIVE (128u * 1024u)
int hetcoll_collective(struct hetcoll_comm *comm, const struct hetcoll_call *call);
/* Continues a call that ended with HETCOLL_DECLINED_TO_STAGE, when this rank has copied what it
 * reads, or of a persistent one that it has made; or has failed to, which it has logged.
 * HETCOLL_DECLINED on all ranks if no rank has failed, else an error on all. Touches no buffer. */
int hetcoll_agree_on_copies(struct hetcoll_comm *comm, const struct hetcoll_call *call, int failed);

/* Before a call that another module serves, by all ranks: those of this node see which it is,
 * whether they wait in a call of ours or hand one on. An error if one is seen to call differently:
 * then the call is not made. Waits for nobody. */
/* The signature of a call that moves bytes, of enum hetcoll_handed_on or enum hetcoll_collective.
 */
int hetcoll_hand_on(struct hetcoll_comm *comm, int collective, size_t bytes, int root,
                    unsigned number);
int hetcoll_hand_on_barrier(struct hetcoll_comm *comm, unsigned number);
/* The signature of one that reduces: collective, kind, op, user_op and reason; root; span with
 * dense, or data_bytes; number. */
int hetcoll_hand_on_reduction(struct hetcoll_comm *comm, const struct hetcoll_call *call);

/* Once for every poll while it is made: says now and then for whom this rank waits in it. Not
 * thread safe. */
void hetcoll_look_in_open_mpi(struct hetcoll_comm *comm);

/* ---- calls that this rank cannot begin ---- */

/* A rank that returns an error before it meets the others leaves them waiting. So it says so, and
 * all get HETCOLL_ERROR_NO_MEMORY, or HETCOLL_ERROR_COLLECTIVE where a stream is being captured.
 * Needs no memory but what is there since the communicator was made, and waits for nobody. */

/* Without a communicator, because it could not be made. */
struct hetcoll_refusal {
    uint64_t memory[35];
};
void hetcoll_refusal_start(struct hetcoll_refusal *refusal, const struct hetcoll_p2p *p2p, int tag);
/* Nonzero: all ranks have heard it, or the network has failed. */
int hetcoll_refusal_step(struct hetcoll_refusal *refusal);

/* With one; `number` is hetcoll_call.number. Both are thread safe. With coll_hetcoll_check off
 * there are ranks that do not understand it: then a rank without memory ends the job. */
void hetcoll_comm_refuse(struct hetcoll_comm *comm, unsigned number, enum hetcoll_why_refused why,
                         int tag);
/* Nonzero: there is nothing left to say. */
int hetcoll_comm_step_refusals(struct hetcoll_comm *comm);

/* ---- nonblocking and persistent calls ---- */

/* One MPI_Iallreduce, or one persistent MPI_Allreduce_init. The operations of a communicator run
 * one after the other, in the order in which they were started, blocking calls among them: all
 * ranks start them in the same order. Thread safe but for calls on the same operation. */
struct hetcoll_operation;

/* `call`, with its context, lives as long as the operation; its kind is not negative or user_op is
 * set. A persistent operation keeps what it finds out about its buffers. NULL: no memory. */
struct hetcoll_operation *hetcoll_operation_create(struct hetcoll_comm *comm,
                                                   const struct hetcoll_call *call, int persistent);
/* Requires that it was not started, or is complete and persistent. */
void hetcoll_operation_start(struct hetcoll_operation *operation);
/* Lets the communicator's operations advance as far as they can now, unless another thread is doing
 * so. Nonzero if this one is complete, with *result as from hetcoll_allreduce(). */
int hetcoll_operation_step(struct hetcoll_operation *operation, int *result);
/* Requires that it is not started, or complete. */
void hetcoll_operation_destroy(struct hetcoll_operation *operation);

/* ---- calls in the order of a CUDA stream ---- */

/* The calls of one communicator on one stream. A call is queued when the stream's work before it
 * may still run; the stream's work behind it waits until it is complete. They are operations of
 * the communicator, in the order in which they were queued. One thread queues at a time. */
struct hetcoll_calls;

/* Nonzero while some queued call of the process is not complete. */
int hetcoll_process_has_queued(const struct hetcoll_process *process);
/* Makes what this rank needs, for calls whose vector has at most `most_bytes`: driver calls, no
 * message. `stream` is a CUstream. Requires that no queued call is pending. NULL: `message` says
 * why. */
struct hetcoll_calls *hetcoll_calls_create(struct hetcoll_comm *comm, void *stream,
                                           size_t most_bytes, char *message, size_t message_bytes);
/* By all ranks, before the first call: what a communicator's first calls make is made. The result
 * is as of hetcoll_allreduce(), the same on all ranks. */
int hetcoll_calls_attach(struct hetcoll_calls *stream, int tag);
/* Whether the stream is given all of the call when it is queued, so that no driver call of the
 * program can hold it. The same on all ranks. */
int hetcoll_calls_prepares(const struct hetcoll_calls *stream, const struct hetcoll_call *call);
/* Positive: a graph is being captured on the stream. Negative: that cannot be known, and `message`
 * says why. */
int hetcoll_calls_is_capturing(const struct hetcoll_calls *stream, char *message,
                               size_t message_bytes);
/* The number of the next call, counted round; negative: all are pending, step. */
#define HETCOLL_STREAM_CALLS 64
int hetcoll_calls_slot(const struct hetcoll_calls *stream);
/* Requires a slot. The call is copied, its context lives until the slot is free again. */
enum {
    HETCOLL_STREAM_WAIT = 100
}; /* queued, but the stream does not wait: wait until it is idle */
int hetcoll_calls_enqueue(struct hetcoll_calls *stream, const struct hetcoll_call *call);
/* Lets the communicator's operations advance and releases the stream. One thread at a time. Returns
 * how many calls have become complete. */
int hetcoll_calls_step(struct hetcoll_calls *stream);
int hetcoll_calls_is_idle(const struct hetcoll_calls *stream);
/* The first error of a call since the last time it was asked for, as of hetcoll_allreduce(). */
int hetcoll_calls_take_error(struct hetcoll_calls *stream);
/* Requires that it is idle. */
void hetcoll_calls_destroy(struct hetcoll_calls *stream);

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
/* Says whether the call reads, writes or both the buffer that was added last. */
void hetcoll_stage_run(struct hetcoll_stage *stage, const struct hetcoll_run *run, int use);
/* The address to use in place of that buffer's, which has a run. NULL: no host memory. */
void *hetcoll_stage_host(struct hetcoll_stage *stage);
/* Copies in what is read, or out what is written; complete when is_done. */
void hetcoll_stage_start(struct hetcoll_stage *stage, int use);
int hetcoll_stage_is_done(struct hetcoll_stage *stage);
/* After those of what is read: zero if some of it could not be copied in, by any way. Whoever
 * receives it from this rank would not know. */
int hetcoll_stage_has_input(const struct hetcoll_stage *stage);
/* After the copies: HETCOLL_SUCCESS, or the error of this rank, logged. "bcast" for `collective`. A
 * stage may then be used again, for the same buffers. */
int hetcoll_stage_finish(struct hetcoll_stage *stage, const char *collective);
void hetcoll_stage_destroy(struct hetcoll_stage *stage);

#ifdef __cplusplus
}
#endif
#endif
