// Local facts about a call: where its buffers are, and whether it can reduce it.
#include "engine/call/protocols.h"

namespace hetcoll {
namespace {

// Whether a pointer is surely in an allocation that is there.
bool is_in_allocation(const void *first, const PointerInfo &info) noexcept
{
    return info.is_plain() && reinterpret_cast<std::uintptr_t>(first) - info.base < info.bytes;
}

// False: this rank has failed.
bool find_buffers(Call &call)
{
    const hetcoll_call &args = *call.args;
    Buffers &buffers = call.buffers;
    buffers.in = args.send;
    buffers.out = args.recv;
    find(call, static_cast<const std::byte *>(args.recv) + args.gap, buffers.recv);
    if (buffers.in_place()) {
        buffers.send = buffers.recv;
    } else if (const auto *first = static_cast<const std::byte *>(args.send) + args.gap;
               is_in_allocation(first, buffers.recv)) {
        buffers.send = buffers.recv;
    } else {
        find(call, first, buffers.send);
    }
    return call.failure.ok();
}

} // namespace

std::size_t vector_bytes(const hetcoll_call &args) noexcept
{
    return args.count * (args.kind >= 0 ? element_bytes(static_cast<ElementKind>(args.kind))
                                        : static_cast<std::size_t>(args.user_op));
}

void wait_for_contexts(Call &call)
{
    if (!call.gpus.contexts().are_waited_for() || !call.buffers.any_device() || call.is_queued()) {
        return;
    }
    call.note(call.gpus.contexts().synchronize(call.buffers.device()));
    if (call.buffers.two_contexts()) {
        call.note(call.gpus.contexts().synchronize(call.buffers.send));
    }
}

void find(Call &call, const void *first, PointerInfo &info)
{
    PointerCache &pointers = call.gpus.pointers();
    Result<PointerInfo> found = pointers.find(first);
    if (!found.ok()) {
        found = pointers.find(first); // once more: all depends on it
    }
    if (found.ok()) {
        info = *found;
    } else {
        call.note(found.take_status());
    }
}

void must_stage(Call &call, const Status &problem)
{
    call.flags |= kMustStage;
    call.classified.reset();
    const bool for_ever = problem.code() == Errc::kUnsupported;
    const Notice notice = for_ever ? Notice::kWithoutKernels : Notice::kStaged;
    const int first_level = for_ever ? 0 : 1;
    log(call.report.log(), call.report.first_time(notice) ? first_level : 2,
        "hetcoll: a rank cannot use its GPU%s, so calls above the small limit are staged, which is "
        "slower: %s",
        for_ever ? "" : " now", problem.message().c_str());
}

void look_at_buffers(Call &call)
{
    if (call.classified) { // by an earlier start of a persistent call
        call.flags = *call.classified;
        wait_for_contexts(call);
        return;
    }
    const hetcoll_call &args = *call.args;
    const Buffers &buffers = call.buffers;
    call.in_order = call.planner.chooser().keeps_order(args);
    call.bytes = vector_bytes(args);
    if (!find_buffers(call)) {
        call.flags = kFailed;
        return;
    }
    call.flags = on_device(buffers.recv) ? kDeviceMemory : kHostMemory;
    if (args.kind < 0 && args.user_op != 0) {
        call.flags |= kUnknownOp;
    }
    if (buffers.any_device()) {
        call.flags |= kDeviceMemory;
        wait_for_contexts(call);
    }
    if (call.persistent && call.failure.ok()) {
        call.classified = call.flags;
    }
}

} // namespace hetcoll
