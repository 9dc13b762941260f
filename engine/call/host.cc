// Calls that need no schedule: those of one rank, and those up to the small limit, which one
// meeting sums on the host. A copy in and a copy out cost less than a kernel launch for every
// round.
#include "engine/call/protocols.h"

#include <cstring>

namespace hetcoll {
namespace {

// This rank's part of the sum to where the meeting wants it.
void put_in(Call &call, std::byte *mine)
{
    const Buffers &buffers = call.buffers;
    if (!call.failure.ok() || call.args->kind < 0) {
        std::memset(mine, 0, call.bytes);
        return;
    }
    if (call.work.device != nullptr && call.work.device->enter().ok()) {
        call.comm.page_pins().pin(*call.work.device->device());
    }
    const void *const from = buffers.input_copied ? call.args->recv : call.args->send;
    if (on_device(buffers.input_copied ? buffers.recv : buffers.send)) {
        call.start_copy(mine, from, call.bytes_in(), buffers.send);
    } else {
        std::memcpy(mine, from, call.bytes_in());
    }
}

void put_out_on_host(const Call &call, const std::byte *sum)
{
    if (call.has_padding()) {
        copy_elements(call.args->recv, sum, call.args->count, call.kind());
    } else {
        std::memcpy(call.args->recv, sum, call.bytes);
    }
}

void start_sum(Call &call, std::byte *mine)
{
    // Whatever a rank that does not know the op makes of the others' numbers is thrown away by all.
    const HostReduction reduction = call.args->kind < 0
                                        ? HostReduction(ReduceOp::kBor, unknown_kind(call))
                                        : HostReduction(call.op(), call.kind());
    call.meeting.start(call.comm.group(), call.comm.messages(), mine, call.args->tag, call.bytes,
                       call.args->count, reduction, call.to_tell());
}

} // namespace

Task<int> host(Call &call)
{
    const bool user_op = call.args->user_op != 0;
    if (!user_op) {
        call.report.serve(HETCOLL_CALLS_HOST);
    }
    std::byte *const mine = Meeting::payload(
        call.comm.group(), call.bytes,
        call.work.device != nullptr ? call.work.device->staging() : call.comm.messages().mine);
    if (!read_by_cpu(call, mine)) {
        co_await until([&call] { return !needs_bounce(call) || try_borrow_bounce(call); });
        put_in(call, mine);
    }
    if (any(call.flags, kDeviceMemory)) {
        call.look_for_freed(call.work.copying);
    }
    co_await call.copied();
    start_sum(call, mine);
    const Flags all = co_await call.all_met();
    if (call.bytes > ControlPage::kSlotPayloadBytes) {
        call.comm.say_page_problem();
    }
    call.report.record.memory |= all;
    if (any(all, kErrors)) {
        co_return call.fail_together(all);
    }
    if (user_op && any(all, kUnknownOp)) {
        co_await until([&call] { return try_borrow_bounce(call); }); // the processor needed none
        co_return co_await staged(call, all);
    }
    if (user_op) {
        call.report.serve(HETCOLL_CALLS_HOST);
    }
    if (!any(all, kHostMemory | kMustStage)) {
        call.planner.note_small_device_call();
    }
    if (call.cpu.send_due || call.cpu.recv_due) {
        co_await make_views(call);
    }
    if (!on_device(call.buffers.recv)) {
        put_out_on_host(call, call.meeting.sum());
        co_return HETCOLL_SUCCESS;
    }
    if (write_by_cpu(call, call.meeting.sum())) {
        co_return call.result();
    }
    co_await until([&call] { return try_borrow_bounce(call); });
    call.start_copy_out(call.args->recv, call.meeting.sum(), call.buffers.recv);
    co_await call.copied();
    co_return call.result();
}

Task<int> alone(Call &call)
{
    const hetcoll_call &args = *call.args;
    if (any(call.flags, kOutOfRange)) {
        co_return HETCOLL_ERROR_RANGE;
    }
    const bool device = call.buffers.any_device();
    call.report.serve(device ? HETCOLL_CALLS_HOST : HETCOLL_CALLS_PREVIOUS);
    if (!call.failure.ok()) {
        co_return call.fail();
    }
    auto *const to = static_cast<std::byte *>(args.recv) + args.gap;
    const auto *const from = static_cast<const std::byte *>(args.send) + args.gap;
    if (!device && args.previous_allreduce != nullptr) {
        co_return args.previous_allreduce(args.context, args.send, args.recv);
    }
    if (call.buffers.in_place()) {
        co_return call.result();
    }
    if (!device && !call.has_padding()) {
        std::memcpy(to, from, args.span);
    } else if (!device) {
        copy_elements(to, from, args.count, call.kind());
    } else if (call.has_padding()) {
        call.start_copy_out(to, from, call.buffers.device());
        co_await call.copied();
    } else {
        call.start_copy(to, from, args.span, call.buffers.device());
        co_await call.copied();
    }
    co_return call.result();
}

} // namespace hetcoll
