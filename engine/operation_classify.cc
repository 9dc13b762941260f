// What a rank knows of a call by itself: where its buffers are, and whether it can reduce it.
#include "engine/flags.h"
#include "engine/operation.h"

namespace hetcoll {

// Reduced in a meeting. The same on ranks that know a user-defined op and on others.
bool Operation::is_small() const noexcept
{
    return bytes_ <= engine_.small_limit() && (!in_order_ || engine_.meets_in_order());
}

// coll_hetcoll_pre_sync=context.
void Operation::wait_for_contexts()
{
    if (process_.settings().sync_context == 0 || !any_device()) {
        return;
    }
    note(process_.synchronize(on_device(recv_) ? recv_ : send_));
    if (two_contexts()) {
        note(process_.synchronize(send_));
    }
}

// Where the first byte of a buffer lies.
void Operation::find(const void *first, PointerInfo &info)
{
    Result<PointerInfo> found = process_.pointers().find(first);
    if (!found.ok()) {
        found = process_.pointers().find(first); // once more: all depends on it
    }
    if (found.ok()) {
        info = *found;
    } else {
        note(found.take_status());
    }
}

// In the context of the pointer; with the kernels of the call where it reduces by them.
Status Operation::borrow_bounce(const PointerInfo &pointer, bool ordinary, bool reduces)
{
    auto bounce = process_.borrow_device(pointer, ordinary);
    if (!bounce.ok()) {
        return bounce.take_status();
    }
    device_ = std::move(*bounce);
    Status status = device_->enter();
    return status.ok() && reduces ? device_->device()->prepare(op(), kind()) : std::move(status);
}

// Finds out where the buffers are, and borrows a bounce if one is on a device.
void Operation::classify()
{
    in_ = call_.send;
    out_ = call_.recv;
    if (is_collective()) {
        classify_collective();
        return;
    }
    if (classified_) {
        flags_ = classified_flags_;
        wait_for_contexts();
        return;
    }
    in_order_ = engine_.keeps_order(call_);
    if (call_.kind >= 0) {
        bytes_ = call_.count * element_bytes(kind());
    } else if (call_.user_op != 0) {
        bytes_ = call_.count * HETCOLL_USER_OP_BYTES;
    }
    find(static_cast<const std::byte *>(call_.recv) + call_.gap, recv_);
    if (in_place()) {
        send_ = recv_;
    } else {
        find(static_cast<const std::byte *>(call_.send) + call_.gap, send_);
    }
    if (!failure_.ok()) {
        flags_ = kFailed;
        return;
    }
    flags_ = on_device(recv_) ? kDeviceMemory : kHostMemory;
    if (call_.kind < 0 && call_.user_op != 0) {
        flags_ |= kUnknownOp;
    }
    if (!any_device()) {
        keep_classification();
        return;
    }
    flags_ |= kDeviceMemory;
    wait_for_contexts();
    // Open MPI 5.0 aborts on memory of pools and of virtual memory management.
    const auto is_ordinary = [](const PointerInfo &info) {
        return info.kind == MemoryKind::kHost || info.legacy_ipc;
    };
    const Status problem =
        borrow_bounce(on_device(recv_) ? recv_ : send_, is_ordinary(send_) && is_ordinary(recv_),
                      call_.kind >= 0 && bytes_ > engine_.small_limit());
    if (!problem.ok()) {
        must_stage(problem);
        return;
    }
    keep_classification();
}

void Operation::must_stage(const Status &problem)
{
    flags_ |= kMustStage;
    log(process_.log(), process_.first_time_staged() ? 1 : 2,
        "hetcoll: a rank cannot use its GPU now, so calls above the small limit are staged: %s",
        problem.message().c_str());
}

void Operation::keep_classification() noexcept
{
    classified_ = persistent_ && failure_.ok();
    classified_flags_ = flags_;
}

} // namespace hetcoll
