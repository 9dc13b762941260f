/* The boundary of a build without CUDA (configure --without-cuda): there is no process state, so
 * the component makes no module and every communicator stays with Open MPI's own components. The
 * functions below hetcoll_process_create() are never reached. */
#include "engine/hetcoll.h"

#include <stdio.h>
#include <stdlib.h>

int hetcoll_set_parameter(struct hetcoll_settings *settings, const char *name, const char *text,
                          char *message, size_t message_bytes)
{
    (void)settings;
    (void)name;
    (void)text;
    (void)message;
    (void)message_bytes;
    return 1; /* nobody looks */
}

struct hetcoll_process *hetcoll_process_create(const struct hetcoll_settings *settings,
                                               char *message, size_t message_bytes)
{
    (void)settings;
    snprintf(message, message_bytes, "hetcoll was built without CUDA");
    return NULL;
}

void hetcoll_process_destroy(struct hetcoll_process *process) { (void)process; }

struct hetcoll_log_file *hetcoll_log_file_open(const char *pattern, int rank, char *message,
                                               size_t message_bytes)
{
    (void)pattern;
    (void)rank;
    snprintf(message, message_bytes, "hetcoll was built without CUDA");
    return NULL;
}

int hetcoll_log_file_write(struct hetcoll_log_file *file, const char *line)
{
    (void)file;
    (void)line;
    return 0;
}

void hetcoll_log_file_close(struct hetcoll_log_file *file) { (void)file; }

void *hetcoll_allocate(size_t bytes) { return calloc(1, bytes); }

int hetcoll_give_up_reserve(void) { return 0; }

void hetcoll_process_facts(const struct hetcoll_process *process, struct hetcoll_facts *facts)
{
    (void)process;
    *facts = (struct hetcoll_facts){.protocol = 0};
}

uint64_t hetcoll_process_counter(const struct hetcoll_process *process,
                                 enum hetcoll_counter counter)
{
    (void)process;
    (void)counter;
    return 0;
}

void hetcoll_process_time_small(struct hetcoll_process *process, int change)
{
    (void)process;
    (void)change;
}

uint64_t hetcoll_trace_clock(const struct hetcoll_process *process)
{
    (void)process;
    return 0;
}

void hetcoll_trace_call(struct hetcoll_process *process, const struct hetcoll_other_call *call)
{
    (void)process;
    (void)call;
}

int hetcoll_facts_set_algorithm(struct hetcoll_facts *facts, const char *name, char *message,
                                size_t message_bytes)
{
    (void)facts;
    (void)name;
    (void)message;
    (void)message_bytes;
    return 0;
}

int hetcoll_facts_set_chunk_bytes(struct hetcoll_facts *facts, size_t chunk_bytes, char *message,
                                  size_t message_bytes)
{
    (void)facts;
    (void)chunk_bytes;
    (void)message;
    (void)message_bytes;
    return 0;
}

void hetcoll_process_offer_direct(struct hetcoll_process *process, const struct hetcoll_p2p *self,
                                  int tag)
{
    (void)process;
    (void)self;
    (void)tag;
}

struct hetcoll_comm *hetcoll_comm_create(struct hetcoll_process *process,
                                         const struct hetcoll_p2p *p2p,
                                         const struct hetcoll_facts *agreed,
                                         const struct hetcoll_facts *facts)
{
    (void)process;
    (void)p2p;
    (void)agreed;
    (void)facts;
    return NULL;
}

void hetcoll_comm_destroy(struct hetcoll_comm *comm) { (void)comm; }

void hetcoll_comm_set_tag(struct hetcoll_comm *comm, const char *tag)
{
    (void)comm;
    (void)tag;
}

void hetcoll_comm_name_stream(struct hetcoll_comm *comm, int named, void *stream)
{
    (void)comm;
    (void)named;
    (void)stream;
}

int hetcoll_allreduce(struct hetcoll_comm *comm, const struct hetcoll_call *call)
{
    (void)comm;
    return call->previous_allreduce(call->context, call->send, call->recv);
}

int hetcoll_collective(struct hetcoll_comm *comm, const struct hetcoll_call *call)
{
    (void)comm;
    (void)call;
    return HETCOLL_DECLINED;
}

int hetcoll_agree_on_copies(struct hetcoll_comm *comm, const struct hetcoll_call *call, int failed)
{
    (void)comm;
    (void)call;
    (void)failed;
    return HETCOLL_DECLINED;
}

int hetcoll_hand_on(struct hetcoll_comm *comm, int collective, size_t bytes, int root,
                    unsigned number)
{
    (void)comm;
    (void)collective;
    (void)bytes;
    (void)root;
    (void)number;
    return HETCOLL_SUCCESS;
}

int hetcoll_hand_on_barrier(struct hetcoll_comm *comm, unsigned number)
{
    (void)comm;
    (void)number;
    return HETCOLL_SUCCESS;
}

int hetcoll_hand_on_reduction(struct hetcoll_comm *comm, const struct hetcoll_call *call)
{
    (void)comm;
    (void)call;
    return HETCOLL_SUCCESS;
}

void hetcoll_look_in_open_mpi(struct hetcoll_comm *comm) { (void)comm; }

int hetcoll_is_reduced(int op, int kind)
{
    (void)op;
    (void)kind;
    return 0;
}

int hetcoll_has_padding(int kind)
{
    (void)kind;
    return 0;
}

size_t hetcoll_element_bytes(int kind)
{
    (void)kind;
    return 1;
}

int hetcoll_recognize_op(struct hetcoll_process *process, void (*function)(void),
                         void (*call)(void *context, const void *in, void *inout, int count),
                         void *context, int *op, int *kind)
{
    (void)process;
    (void)call;
    (void)context;
    (void)function;
    (void)op;
    (void)kind;
    return 0;
}

struct hetcoll_operation *hetcoll_operation_create(struct hetcoll_comm *comm,
                                                   const struct hetcoll_call *call, int persistent)
{
    (void)comm;
    (void)call;
    (void)persistent;
    return NULL;
}

void hetcoll_operation_start(struct hetcoll_operation *operation) { (void)operation; }

void hetcoll_refusal_start(struct hetcoll_refusal *refusal, const struct hetcoll_p2p *p2p, int tag)
{
    (void)refusal;
    (void)p2p;
    (void)tag;
}

int hetcoll_refusal_step(struct hetcoll_refusal *refusal)
{
    (void)refusal;
    return 1;
}

void hetcoll_comm_refuse(struct hetcoll_comm *comm, unsigned number, enum hetcoll_why_refused why,
                         int tag)
{
    (void)comm;
    (void)number;
    (void)why;
    (void)tag;
}

int hetcoll_comm_step_refusals(struct hetcoll_comm *comm)
{
    (void)comm;
    return 1;
}

int hetcoll_operation_step(struct hetcoll_operation *operation, int *result)
{
    (void)operation;
    *result = HETCOLL_ERROR_NO_MEMORY;
    return 1;
}

void hetcoll_operation_destroy(struct hetcoll_operation *operation) { (void)operation; }

int hetcoll_stage_add(struct hetcoll_process *process, struct hetcoll_stage **stage, void *buffer,
                      const void *first, int leave_ordinary)
{
    (void)process;
    (void)stage;
    (void)buffer;
    (void)first;
    (void)leave_ordinary;
    return 0;
}

void hetcoll_stage_run(struct hetcoll_stage *stage, const struct hetcoll_run *run, int use)
{
    (void)stage;
    (void)run;
    (void)use;
}

void *hetcoll_stage_host(struct hetcoll_stage *stage)
{
    (void)stage;
    return NULL;
}

void hetcoll_stage_start(struct hetcoll_stage *stage, int use)
{
    (void)stage;
    (void)use;
}

int hetcoll_stage_is_done(struct hetcoll_stage *stage)
{
    (void)stage;
    return 1;
}

int hetcoll_stage_has_input(const struct hetcoll_stage *stage)
{
    (void)stage;
    return 1;
}

int hetcoll_stage_finish(struct hetcoll_stage *stage, const char *collective)
{
    (void)stage;
    (void)collective;
    return HETCOLL_SUCCESS;
}

void hetcoll_stage_destroy(struct hetcoll_stage *stage) { (void)stage; }

int hetcoll_process_has_queued(const struct hetcoll_process *process)
{
    (void)process;
    return 0;
}

struct hetcoll_calls *hetcoll_calls_create(struct hetcoll_comm *comm, void *stream,
                                           size_t most_bytes, char *message, size_t message_bytes)
{
    (void)comm;
    (void)stream;
    (void)most_bytes;
    snprintf(message, message_bytes, "hetcoll was built without CUDA");
    return NULL;
}

int hetcoll_calls_attach(struct hetcoll_calls *stream, int tag)
{
    (void)stream;
    (void)tag;
    return HETCOLL_ERROR_DEVICE;
}

int hetcoll_calls_prepares(const struct hetcoll_calls *stream, const struct hetcoll_call *call)
{
    (void)stream;
    (void)call;
    return 0;
}

int hetcoll_calls_is_capturing(const struct hetcoll_calls *stream, char *message,
                               size_t message_bytes)
{
    (void)stream;
    (void)message;
    (void)message_bytes;
    return 0;
}

int hetcoll_calls_slot(const struct hetcoll_calls *stream)
{
    (void)stream;
    return 0;
}

int hetcoll_calls_enqueue(struct hetcoll_calls *stream, const struct hetcoll_call *call)
{
    (void)stream;
    (void)call;
    return HETCOLL_ERROR_DEVICE;
}

int hetcoll_calls_step(struct hetcoll_calls *stream)
{
    (void)stream;
    return 0;
}

int hetcoll_calls_is_idle(const struct hetcoll_calls *stream)
{
    (void)stream;
    return 1;
}

int hetcoll_calls_take_error(struct hetcoll_calls *stream)
{
    (void)stream;
    return HETCOLL_SUCCESS;
}

void hetcoll_calls_destroy(struct hetcoll_calls *stream) { (void)stream; }
