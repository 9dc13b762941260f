// Calls that hetcoll does not, or cannot now, reduce are copied to the host, where the
// previous module reduces it.
#include "engine/call/loan.h"
#include "engine/call/protocols.h"
#include "engine/process/stage.h"
#include "plan/facts.h"

#include <cstring>
#include <new>
#include <optional>

namespace hetcoll {
namespace {

constexpr std::size_t kAlignment = 256; // of the driver's allocations

// Host copies of the buffers; nothing of one that is on the host and can be used itself.
struct HostCopies {
    Loan<StagingMemory> send, recv;
    bool in_recv = false; // the input is there
    // For types with holes, in place of these two.
    std::optional<Stage> stage;
    const void *host_send = nullptr, *host_recv = nullptr;
};

hetcoll_staged_reason reason_of(const Call &call) noexcept
{
    if (call.args->kind < 0 && call.args->reason != HETCOLL_REASON_NONE) {
        return static_cast<hetcoll_staged_reason>(call.args->reason);
    }
    return any(call.flags, kMustStage) ? HETCOLL_REASON_GPU : HETCOLL_REASON_OTHER_RANK;
}

void serve_on_host(Call &call, bool own_schedule)
{
    if (call.buffers.any_device()) {
        call.report.serve_staged(reason_of(call));
    } else if (!own_schedule) {
        call.report.serve(HETCOLL_CALLS_PREVIOUS);
    } else {
        call.report.serve(call.in_order ? HETCOLL_CALLS_ORDERED : HETCOLL_CALLS_HOST);
    }
}

// Memory of a schedule of ours on the host. A nonblocking call takes one: the previous module
// takes its tags when it is called, and ranks that have got here would call it at different times.
// A sum in the order of the ranks takes one as well: the previous module has its own order.
void prepare_host(Call &call)
{
    if (call.work.host != nullptr) {
        return;
    }
    auto bounce = call.gpus.pool().borrow_host();
    if (bounce.ok()) {
        call.work.host = std::move(*bounce);
    } else {
        call.note(bounce.take_status());
    }
}

// Where the data begins in staging memory: at the alignment that it has in a buffer of that kind.
std::byte *first_byte(const Call &call, const StagingMemory &memory) noexcept
{
    constexpr auto kModulus = static_cast<std::ptrdiff_t>(kAlignment);
    return memory.data() + (call.args->gap % kModulus + kModulus) % kModulus;
}

Loan<StagingMemory> borrow(Call &call)
{
    const bool pinned = call.work.device != nullptr && call.work.device->enter().ok();
    Status why;
    Loan<StagingMemory> memory =
        loan(call,
             call.gpus.pool().borrow_staging(pinned ? call.work.device->device() : nullptr,
                                             call.args->span + kAlignment),
             why);
    call.note(std::move(why));
    return memory;
}

void start_read(Call &call, const StagingMemory &memory, const void *from, const PointerInfo &info)
{
    call.start_copy(first_byte(call, memory), static_cast<const std::byte *>(from) + call.args->gap,
                    call.has_padding() ? call.bytes_in() : call.args->span, info);
}

bool has_holes(const Call &call) noexcept { return call.args->kind < 0 && call.args->dense == 0; }

// One buffer of a type with holes: host memory for it, in which nothing stands for the holes.
const void *add_runs(Call &call, Stage &stage, void *buffer, const PointerInfo &info, bool read,
                     bool written)
{
    struct Taker {
        Stage &stage;
        bool read, written, throws;
    } taker{stage, read, written, false};
    stage.add(buffer, info);
    call.args->tell_runs(
        call.args->context,
        [](void *to, const hetcoll_run *run) {
            auto &taking = *static_cast<Taker *>(to);
            try {
                taking.stage.add_run(*run, taking.read, taking.written);
            } catch (const std::bad_alloc &) { // not through the component's code
                taking.throws = true;
            }
        },
        &taker);
    if (taker.throws) {
        call.note(Status::out_of_memory());
        return nullptr;
    }
    return stage.host();
}

void start_reading_runs(Call &call, HostCopies &copies)
{
    const Buffers &buffers = call.buffers;
    Stage &stage = copies.stage.emplace(call.comm.process());
    if (on_device(buffers.recv)) {
        copies.host_recv =
            add_runs(call, stage, call.args->recv, buffers.recv, buffers.in_place(), true);
    }
    if (on_device(buffers.send) && !buffers.in_place()) {
        copies.host_send =
            add_runs(call, stage, const_cast<void *>(call.args->send), buffers.send, true, false);
    }
    if (call.failure.ok()) {
        stage.start_read();
    }
}

// Bytes of the runs, and of whatever else is copied.
auto copied(Call &call, HostCopies &copies)
{
    return until([&call, &copies] {
        if (!call.poll_copy() || (copies.stage && !copies.stage->is_done())) {
            return false;
        }
        if (copies.stage) {
            call.note(copies.stage->take_failure());
        }
        return true;
    });
}

void start_reading(Call &call, HostCopies &copies)
{
    const Buffers &buffers = call.buffers;
    if (!call.failure.ok()) {
        return;
    }
    if (has_holes(call)) {
        start_reading_runs(call, copies);
        return;
    }
    if (on_device(buffers.recv)) {
        copies.recv = borrow(call);
        if (copies.recv != nullptr && buffers.in_place()) { // its old content matters
            start_read(call, *copies.recv, call.args->recv, buffers.recv);
        }
    }
    if (on_device(buffers.send) && !buffers.in_place()) {
        copies.send = borrow(call);
        if (copies.send != nullptr) {
            start_read(call, *copies.send, call.args->send, buffers.send);
        }
    }
}

// A schedule of ours writes pairs with their padding. In host memory it gets a vector of ours, too.
void place_on_host(Call &call, HostCopies &copies)
{
    if (!call.failure.ok() || !call.has_padding() || on_device(call.buffers.recv)) {
        return;
    }
    copies.recv = borrow(call);
    if (copies.recv != nullptr && copies.send == nullptr) {
        const void *const from = call.buffers.in_place() ? call.args->recv : call.args->send;
        std::memcpy(first_byte(call, *copies.recv), from, call.bytes_in());
        copies.in_recv = true;
    }
}

void start_writing(Call &call, HostCopies &copies)
{
    const hetcoll_call &args = *call.args;
    if (copies.stage) {
        copies.stage->start_write();
        return;
    }
    std::byte *const from = first_byte(call, *copies.recv);
    auto *const to = static_cast<std::byte *>(args.recv) + args.gap;
    if (!on_device(call.buffers.recv)) {
        copy_elements(to, from, args.count, call.kind());
    } else if (call.has_padding()) {
        call.start_copy_out(to, from, call.buffers.recv);
    } else {
        call.start_copy(to, from, args.span, call.buffers.recv);
    }
}

// The previous module's: zero, or its error code.
int reduce_by_previous(Call &call, const HostCopies &copies)
{
    const hetcoll_call &args = *call.args;
    const auto host = [&](const Loan<StagingMemory> &memory, const void *runs, const void *buffer) {
        return memory ? first_byte(call, *memory) - args.gap
                      : static_cast<const std::byte *>(runs != nullptr ? runs : buffer);
    };
    auto *const recv = const_cast<std::byte *>(host(copies.recv, copies.host_recv, args.recv));
    const std::byte *const send =
        call.buffers.in_place() ? recv : host(copies.send, copies.host_send, args.send);
    call.work.leave_context();
    return args.previous_allreduce(args.context, send, recv);
}

void start_schedule(Call &call, const HostCopies &copies, Flags all)
{
    const hetcoll_call &args = *call.args;
    const auto data = [&](const Loan<StagingMemory> &memory, const void *buffer) {
        return memory ? first_byte(call, *memory)
                      : static_cast<const std::byte *>(buffer) + args.gap;
    };
    auto *const recv = const_cast<std::byte *>(data(copies.recv, args.recv));
    Vectors vectors{
        .send = call.buffers.in_place() || copies.in_recv ? recv : data(copies.send, args.send),
        .recv = recv,
        .count = args.count,
        .op = call.op(),
        .kind = call.kind(),
        .user = {},
    };
    Choice choice;
    if (!any(all, kUnknownOp)) {
        choice = message_choice(call);
    } else { // the kind says no more than the element's size: not all ranks know the op
        vectors.op = ReduceOp::kSum;
        vectors.kind = unknown_kind(call);
        vectors.user = {args.reduce, args.context};
    }
    call.work.executor_runs = true;
    call.planner.executor().start(call.planner.schedules().of(choice, args.span).schedule,
                                  call.comm.p2p(), args.tag, *call.work.host, vectors,
                                  choice.chunk_bytes, !call.failure.ok());
}

} // namespace

bool runs_on_host(const Call &call, Flags all) noexcept
{
    return call.args->previous_allreduce == nullptr || (call.in_order && !any(all, kUnknownOp));
}

Choice message_choice(const Call &call)
{
    Choice choice = call.planner.chooser().choose(*call.args, call.bytes, {});
    if (call.in_order) {
        choice.algorithm = kInRankOrder;
    } else if (!contains(kMessageAlgorithms, choice.algorithm)) { // a small call's
        choice = {};
    }
    return choice;
}

Task<int> staged(Call &call, Flags all)
{
    const bool own_schedule = runs_on_host(call, all);
    serve_on_host(call, own_schedule);
    if (own_schedule) {
        prepare_host(call);
    }
    HostCopies copies;
    start_reading(call, copies);
    if (own_schedule) {
        place_on_host(call, copies);
    }
    call.look_for_freed(call.buffers.any_device());
    co_await copied(call, copies);
    const Flags read = co_await call.agree();
    if (any(read, kErrors)) {
        co_return call.fail_together(read);
    }
    if (own_schedule) {
        start_schedule(call, copies, all);
        co_await ran(call);
        const Flags closed = co_await close(call);
        if (any(closed, kFailed)) {
            co_return call.fail_together(closed);
        }
    } else if (const int code = reduce_by_previous(call, copies); code != 0) {
        co_return code;
    }
    if (copies.recv == nullptr && copies.host_recv == nullptr) {
        co_return HETCOLL_SUCCESS;
    }
    start_writing(call, copies);
    co_await copied(call, copies);
    co_return call.result();
}

} // namespace hetcoll
