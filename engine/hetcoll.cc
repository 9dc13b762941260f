// The boundary: plain C outside, C++ inside, and no exception across. The only exception here is
// memory exhaustion in the standard library.
#include "engine/hetcoll.h"

#include "base/float_control.h"
#include "base/padding.h"
#include "engine/boundary.h"
#include "engine/call/idle_sleep.h"
#include "engine/call/operation.h"
#include "engine/call/operation_queue.h"
#include "engine/call/stream_gate.h"
#include "engine/communicator/communicator.h"
#include "engine/communicator_handle.h"
#include "engine/meeting/flags.h"
#include "engine/process/memory_reserve.h"
#include "engine/process/parameters.h"
#include "engine/process/settings.h"
#include "engine/process_handle.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>

using hetcoll::Communicator;
using hetcoll::Operation;
using hetcoll::OperationQueue;
using hetcoll::Process;
using hetcoll::QueueTurn;

// The boundary's enums are the core's: first, last, and the order between is one list each.
static_assert(HETCOLL_FLOAT64_FLOAT64 == static_cast<int>(hetcoll::ElementKind::kFloat64x2));
static_assert(HETCOLL_FLOAT8_E5M2 == static_cast<int>(hetcoll::ElementKind::kFloat8E5m2));
static_assert(HETCOLL_BOOL == static_cast<int>(hetcoll::ElementKind::kBool));
static_assert(HETCOLL_BFLOAT16 == static_cast<int>(hetcoll::ElementKind::kBfloat16));
static_assert(HETCOLL_MIN_FIRST == static_cast<int>(hetcoll::ReduceOp::kMinFirst));
static_assert(HETCOLL_STAGED_COLLECTIVE - HETCOLL_STAGED_USER_OP ==
              HETCOLL_REASON_COLLECTIVE - HETCOLL_REASON_USER_OP);
static_assert(HETCOLL_SUM == static_cast<int>(hetcoll::ReduceOp::kSum));

int hetcoll_is_reduced(int op, int kind)
{
    return hetcoll::is_defined(static_cast<hetcoll::ReduceOp>(op),
                               static_cast<hetcoll::ElementKind>(kind));
}

size_t hetcoll_element_bytes(int kind)
{
    return hetcoll::element_bytes(static_cast<hetcoll::ElementKind>(kind));
}

int hetcoll_has_padding(int kind)
{
    return hetcoll::has_padding(static_cast<hetcoll::ElementKind>(kind)) ? 1 : 0;
}

struct hetcoll_operation {
    hetcoll_operation(hetcoll_comm &comm, const hetcoll_call &call, hetcoll::Start start)
        : queue(comm.queue), gate(comm.comm), operation(comm.comm, call, start, &gate)
    {
    }
    OperationQueue &queue;
    hetcoll::StreamGate gate;
    Operation operation;
    bool started = false;
};

static void say_out_of_memory(char *message, std::size_t message_bytes)
{
    std::snprintf(message, message_bytes, "out of host memory");
}

hetcoll_process *hetcoll_process_create(const hetcoll_settings *settings, char *message,
                                        size_t message_bytes)
{
    const hetcoll::DefaultFloats control; // numbers are read alike in all processes
    const hetcoll::MemoryReserve reserve; // before there is the process's own
    return hetcoll::if_memory_lasts(
        [&]() -> hetcoll_process * {
            auto process = Process::create(*settings);
            if (process.ok()) {
                return new hetcoll_process{std::move(*process)};
            }
            std::snprintf(message, message_bytes, "%s", process.status().message().c_str());
            return nullptr;
        },
        [&] {
            say_out_of_memory(message, message_bytes);
            return nullptr;
        });
}

int hetcoll_set_parameter(hetcoll_settings *settings, const char *name, const char *text,
                          char *message, size_t message_bytes)
{
    const hetcoll::DefaultFloats control;
    return hetcoll::if_memory_lasts(
        [&] {
            const auto wrong = hetcoll::set_parameter(*settings, name, text);
            if (!wrong) {
                return 1;
            }
            std::snprintf(message, message_bytes, "%s", wrong->message.c_str());
            return wrong->changes_results ? -1 : 0;
        },
        [&] {
            say_out_of_memory(message, message_bytes);
            return -1;
        });
}

void hetcoll_process_destroy(hetcoll_process *process) { delete process; }

int hetcoll_give_up_reserve(void) { return hetcoll::MemoryReserve::give_up() ? 1 : 0; }

void *hetcoll_allocate(size_t bytes)
{
    static_cast<void>(hetcoll::MemoryReserve::fill()); // it may have been used since the last call
    void *memory = std::calloc(1, bytes);
    if (memory == nullptr && hetcoll_give_up_reserve() != 0) {
        memory = std::calloc(1, bytes);
    }
    return memory;
}

int hetcoll_recognize_op(hetcoll_process *process, void (*function)(void),
                         void (*call)(void *context, const void *in, void *inout, int count),
                         void *context, int *op, int *kind)
{
    if (process->process->user_ops() == nullptr) {
        return 0;
    }
    const hetcoll::DefaultFloats control; // under which hetcoll will do the op
    return hetcoll::if_memory_lasts(
        [&] {
            const auto known = process->process->user_ops()->recognize(function, {call, context});
            if (known) {
                *op = static_cast<int>(known->op);
                *kind = static_cast<int>(known->kind);
            }
            return known ? 1 : 0;
        },
        [] { return 0; }); // staged, as the other ranks learn
}

void hetcoll_process_facts(const hetcoll_process *process, hetcoll_facts *facts)
{
    *facts = process->process->facts();
}

uint64_t hetcoll_process_counter(const hetcoll_process *process, hetcoll_counter counter)
{
    return process->process->counters().counter(counter);
}

void hetcoll_process_time_small(hetcoll_process *process, int change)
{
    process->process->counters().time_small(change);
}

uint64_t hetcoll_trace_clock(const hetcoll_process *process)
{
    return process->process->counters().times_small() ? hetcoll::now_ns() : 0;
}

void hetcoll_trace_call(hetcoll_process *process, const hetcoll_other_call *call)
{
    hetcoll::CallRecord record;
    record.call = call->call;
    record.comm_id = call->comm_id;
    record.tag = call->tag;
    record.rank = call->rank;
    record.comm_size = call->comm_size;
    record.bytes = call->bytes;
    record.kind = call->kind;
    record.op = call->op;
    record.memory = call->device != 0 ? hetcoll::kDeviceMemory : hetcoll::kHostMemory;
    record.served = call->device != 0 ? HETCOLL_CALLS_STAGED : HETCOLL_CALLS_PREVIOUS;
    record.staged_reason = call->reason;
    record.start_ns = call->start_ns;
    record.ns = hetcoll::now_ns() - call->start_ns;
    record.failed = call->failed != 0;
    process->process->counters().tell(record);
}

int hetcoll_facts_set_algorithm(hetcoll_facts *facts, const char *name, char *message,
                                size_t message_bytes)
{
    return hetcoll::if_memory_lasts(
        [&] {
            const auto algorithm = hetcoll::parse_algorithm(name);
            if (!algorithm.ok()) {
                std::snprintf(message, message_bytes, "%s", algorithm.status().message().c_str());
                return 0;
            }
            facts->algorithm = *algorithm;
            return 1;
        },
        [&] {
            say_out_of_memory(message, message_bytes);
            return 0;
        });
}

int hetcoll_facts_set_chunk_bytes(hetcoll_facts *facts, size_t chunk_bytes, char *message,
                                  size_t message_bytes)
{
    return hetcoll::if_memory_lasts(
        [&] {
            hetcoll_settings settings = hetcoll_default_settings();
            settings.chunk_bytes = chunk_bytes;
            const hetcoll::Status status = hetcoll::check_numbers(settings);
            if (!status.ok()) {
                std::snprintf(message, message_bytes, "%s", status.message().c_str());
                return 0;
            }
            facts->chunk_bytes = chunk_bytes;
            return 1;
        },
        [&] {
            say_out_of_memory(message, message_bytes);
            return 0;
        });
}

void hetcoll_process_offer_direct(hetcoll_process *process, const hetcoll_p2p *self, int tag)
{
    process->process->gpus().direct_messages().offer(*self, tag);
}

hetcoll_comm *hetcoll_comm_create(hetcoll_process *process, const hetcoll_p2p *p2p,
                                  const hetcoll_facts *agreed, const hetcoll_facts *facts)
{
    static_cast<void>(hetcoll::MemoryReserve::fill());
    return hetcoll::if_memory_lasts(
        [&] {
            return new hetcoll_comm(*process->process, *p2p, *agreed,
                                    {facts, static_cast<std::size_t>(p2p->size)});
        },
        [] { return nullptr; });
}

void hetcoll_comm_destroy(hetcoll_comm *comm) { delete comm; }

void hetcoll_comm_set_tag(hetcoll_comm *comm, const char *tag) { comm->comm.set_tag(tag); }

void hetcoll_comm_name_stream(hetcoll_comm *comm, int named, void *stream)
{
    comm->comm.named_stream().set(
        named != 0 ? std::optional<CUstream>(static_cast<CUstream>(stream)) : std::nullopt);
}

namespace {

// Behind nonblocking operations that are not complete.
int run_in_queue(hetcoll_comm &comm, Operation &operation)
{
    const hetcoll_p2p &p2p = comm.comm.p2p();
    comm.queue.push(operation);
    while (!operation.is_complete()) {
        comm.queue.step();
        p2p.progress(p2p.context);
    }
    return operation.result();
}

int run_alone(Communicator &comm, Operation &operation)
{
    const hetcoll_p2p &p2p = comm.p2p();
    hetcoll::IdleSleep idle;
    while (!operation.step()) {
        p2p.progress(p2p.context);
        if (p2p.shares_processor != 0) {
            idle.wait(operation.moves());
        }
    }
    return operation.result();
}

int run(hetcoll_comm &comm, const hetcoll_call &call, const QueueTurn &turn)
{
    hetcoll::StreamGate gate(comm.comm);
    Operation operation(comm.comm, call, hetcoll::Start::kOnce, &gate);
    gate.close();
    try {
        return turn.has_come() ? run_alone(comm.comm, operation) : run_in_queue(comm, operation);
    } catch (const std::bad_alloc &) {
        operation.fail_without_memory();
        return operation.result();
    }
}

} // namespace

int hetcoll_allreduce(hetcoll_comm *comm, const hetcoll_call *call)
{
    const QueueTurn turn(comm->queue);
    if (turn.has_come()) {
        if (const auto code = comm->host_calls.try_serve(*call)) {
            return *code;
        }
    }
    return run(*comm, *call, turn);
}

int hetcoll_collective(hetcoll_comm *comm, const hetcoll_call *call)
{
    return hetcoll::run_blocking(*comm, *call);
}

int hetcoll::run_blocking(hetcoll_comm &comm, const hetcoll_call &call)
{
    return run(comm, call, QueueTurn(comm.queue));
}

int hetcoll_agree_on_copies(hetcoll_comm *comm, const hetcoll_call *call, int failed)
{
    hetcoll_call told = *call;
    told.copies = failed != 0 ? HETCOLL_COPIES_FAILED : HETCOLL_COPIES_MADE;
    return run(*comm, told, QueueTurn(comm->queue));
}

int hetcoll_hand_on(hetcoll_comm *comm, int collective, std::size_t bytes, int root,
                    unsigned number)
{
    return comm->comm.hand_on(hetcoll::signature_of_move(collective, bytes, root, number));
}

int hetcoll_hand_on_barrier(hetcoll_comm *comm, unsigned number)
{
    return comm->comm.hand_on(hetcoll::signature_of_move(HETCOLL_BARRIER, 0, 0, number));
}

int hetcoll_hand_on_reduction(hetcoll_comm *comm, const hetcoll_call *call)
{
    return comm->comm.hand_on(hetcoll::signature_of(*call));
}

void hetcoll_look_in_open_mpi(hetcoll_comm *comm) { comm->comm.look_in_open_mpi(); }

static_assert(sizeof(hetcoll::RollCall) <= sizeof(hetcoll_refusal::memory) &&
              alignof(hetcoll::RollCall) <= alignof(hetcoll_refusal) &&
              std::is_trivially_destructible_v<hetcoll::RollCall>);

void hetcoll_refusal_start(hetcoll_refusal *refusal, const hetcoll_p2p *p2p, int tag)
{
    (new (refusal->memory) hetcoll::RollCall)->start(*p2p, tag);
}

int hetcoll_refusal_step(hetcoll_refusal *refusal)
{
    auto *const roll_call = std::launder(reinterpret_cast<hetcoll::RollCall *>(refusal->memory));
    return roll_call->step() != hetcoll::Progress::kPending ? 1 : 0;
}

void hetcoll_comm_refuse(hetcoll_comm *comm, unsigned number, hetcoll_why_refused why, int tag)
{
    comm->refusals.add(number, why, tag);
}

int hetcoll_comm_step_refusals(hetcoll_comm *comm) { return comm->refusals.are_over() ? 1 : 0; }

hetcoll_operation *hetcoll_operation_create(hetcoll_comm *comm, const hetcoll_call *call,
                                            int persistent)
{
    const hetcoll::UsesReserve uses_reserve;
    return new (std::nothrow) hetcoll_operation(
        *comm, *call, persistent != 0 ? hetcoll::Start::kPersistent : hetcoll::Start::kOnce);
}

void hetcoll_operation_start(hetcoll_operation *operation)
{
    if (operation->started) {
        operation->operation.rewind();
    }
    operation->started = true;
    const hetcoll::UsesReserve uses_reserve;
    operation->gate.close();
    operation->queue.push(operation->operation);
}

int hetcoll_operation_step(hetcoll_operation *operation, int *result)
{
    if (!operation->operation.is_complete()) {
        operation->queue.step();
    }
    if (!operation->operation.is_complete()) {
        return 0;
    }
    *result = operation->operation.result();
    return 1;
}

void hetcoll_operation_destroy(hetcoll_operation *operation) { delete operation; }
