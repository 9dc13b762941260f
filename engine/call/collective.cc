// Broadcast, reduce, allgather and reduce-scatter of device memory: the halves of an allreduce, by
// the same agreement, mapping and executor. Only where all ranks have device memory: else all
// decline, and where some rank has device memory they meet once more, when it has been copied.
#include "engine/call/loan.h"
#include "engine/call/protocols.h"

namespace hetcoll {
namespace {

std::size_t share_bytes(const Call &call) noexcept
{
    return call.bytes / static_cast<std::size_t>(call.comm.p2p().size);
}

std::size_t own_offset(const Call &call) noexcept
{
    return share_bytes(call) * static_cast<std::size_t>(call.comm.p2p().rank);
}

// A reduction writes sums on its way into a whole vector, which only the root of a reduce has.
bool has_whole_vector(const hetcoll_call &args) noexcept
{
    switch (static_cast<hetcoll_collective>(args.collective)) {
    case HETCOLL_ALLREDUCE:
    case HETCOLL_BCAST:
    case HETCOLL_ALLGATHER: return true;
    case HETCOLL_REDUCE: return args.recv != nullptr;
    case HETCOLL_REDUCE_SCATTER: return false;
    }
    return true;
}

// A queued call makes no memory for it. Another one of its communicator may: larger vectors are
// declined.
void place_in_reserved(Call &call)
{
    const Scratch &scratch = *call.comm.reserved().scratch;
    if (scratch.bytes < call.bytes && !call.is_queued()) {
        call.flags |= kMustStage;
        return;
    }
    if (Status fits = fits_attached(call.bytes, scratch); !fits.ok()) {
        call.note(std::move(fits));
        return;
    }
    call.buffers.out = scratch.data();
    find(call, scratch.data(), call.buffers.recv);
}

// Which vectors the schedule works on. An allgather and a broadcast work in place. Memory for a
// whole result if the call has none.
Loan<Scratch> place_vectors(Call &call)
{
    const hetcoll_call &args = *call.args;
    Buffers &buffers = call.buffers;
    if (call.work.device == nullptr || any(call.flags, kMustStage)) {
        return {};
    }
    if (args.collective == HETCOLL_BCAST || args.collective == HETCOLL_ALLGATHER) {
        buffers.in = args.recv;
        buffers.send = buffers.recv;
    }
    if (has_whole_vector(args)) {
        return {};
    }
    if (call.work.uses_reserved) {
        place_in_reserved(call);
        return {};
    }
    Status problem;
    Loan<Scratch> scratch = loan(
        call, call.gpus.pool().borrow_scratch(call.work.device->device(), call.bytes), problem);
    if (scratch != nullptr) {
        buffers.out = scratch->data();
        Result<PointerInfo> found = call.gpus.pointers().find(buffers.out);
        if (found.ok()) {
            buffers.recv = *found;
        } else {
            problem = found.take_status();
        }
    }
    if (!problem.ok()) {
        must_stage(call, problem);
    }
    return scratch;
}

// Where this rank's buffers are. A rank that cannot take part, one with holes in its datatype too,
// says so in the agreement.
void look(Call &call)
{
    const hetcoll_call &args = *call.args;
    Buffers &buffers = call.buffers;
    buffers.in = args.send;
    buffers.out = args.recv;
    call.bytes = args.count * element_bytes(call.kind());
    PointerInfo first, second;
    find(call, args.send, first);
    second = first;
    if (args.recv != nullptr && args.recv != args.send) {
        find(call, args.recv, second);
    }
    if (!call.failure.ok()) {
        call.flags = kFailed;
        return;
    }
    if (args.dense == 0 || !on_device(first) || !on_device(second) ||
        first.device != second.device || first.context != second.context) {
        const bool stages = on_device(first) || on_device(second);
        call.flags = stages ? kHostMemory | kDeviceMemory : kHostMemory;
        return;
    }
    call.flags = kDeviceMemory;
    buffers.send = first;
    buffers.recv = second;
    wait_for_contexts(call);
}

// This rank's share of an allgather to its place.
void place_own_share(Call &call)
{
    const hetcoll_call &args = *call.args;
    if (call.failure.ok() && call.flags == kDeviceMemory && args.collective == HETCOLL_ALLGATHER &&
        args.send != args.recv) {
        call.start_copy(static_cast<std::byte *>(args.recv) + own_offset(call), args.send,
                        share_bytes(call), call.buffers.recv);
    }
}

// The share of a reduce-scatter to where the caller wants it; another result if peers wrote it
// somewhere else. `scratch`: the call has no whole vector.
void start_copy_out(Call &call, bool scratch)
{
    const MappedCall::Copy copy =
        call.mapped ? call.planner.mapped().copy_out() : MappedCall::Copy{};
    const Buffers &buffers = call.buffers;
    const void *const result = copy.from != nullptr ? copy.from : buffers.out;
    if (call.args->collective == HETCOLL_REDUCE_SCATTER) {
        call.start_copy(call.args->recv, static_cast<const std::byte *>(result) + own_offset(call),
                        share_bytes(call), buffers.recv);
    } else if (result != buffers.out && !scratch) {
        call.start_copy(buffers.out, result, call.bytes, buffers.recv);
    }
}

} // namespace

Task<int> collective(Call &call)
{
    look(call);
    co_await make_ready(call);
    const Loan<Scratch> scratch = place_vectors(call);
    place_own_share(call);
    co_await call.copied();
    for (;;) { // once more when the ranks have found their peers
        const Choice choice = call.planner.chooser().choose_for_collective(call.bytes);
        Published published(call.planner);
        co_await publish(call, choice, published);
        const Flags all = co_await call.agree();
        call.report.record.memory |= all;
        if (any(all, kErrors)) {
            co_return call.fail_together(all);
        }
        if (any(all, kHostMemory | kMustStage)) {
            co_return any(all, kDeviceMemory) ? HETCOLL_DECLINED_TO_STAGE : HETCOLL_DECLINED;
        }
        if (any(all, kNewDevice)) {
            call.planner.find_peers_anew();
        }
        if (!call.planner.peers().known()) {
            start_finding_peers(call);
            co_await until([&call] { return poll_peers(call); });
            continue;
        }
        if (call.planner.chooser().uses_mapping(choice) && !any(all, kNoMapping)) {
            Status problem = co_await map(call, choice);
            if (any(all, kNewBuffers)) {
                co_await agree_on_mapping(call, problem, nullptr);
            }
            note_mapped(call, std::move(problem));
        }
        bring_input(call);
        co_await call.copied();
        call.report.count(HETCOLL_CALLS_COLLECTIVE);
        call.report.record.schedule =
            shape_name(call.planner.schedules()
                           .of_collective(call.args->collective, call.args->root)
                           .key.shape);
        co_await peers_stay(call);
        const Timed timed = start_run(call, choice, nullptr);
        co_await ran(call);
        const Flags closed = co_await close(call, timed);
        if (any(closed, kFailed)) {
            co_return call.fail_together(closed);
        }
        start_copy_out(call, scratch != nullptr);
        co_await call.copied();
        co_return call.result();
    }
}

Task<int> copies(Call &call)
{
    const bool failed = call.args->copies == HETCOLL_COPIES_FAILED;
    call.flags = failed ? kFailed : Flags{};
    co_await until([&call] { return poll_pages(call); });
    const Flags all = co_await call.agree();
    if (!any(all, kErrors)) {
        co_return HETCOLL_DECLINED;
    }
    if (failed && !any(all, kCallsDiffer)) { // and has said why
        call.forget_peers();
        co_return HETCOLL_ERROR_DEVICE;
    }
    co_return call.fail_together(all);
}

} // namespace hetcoll
