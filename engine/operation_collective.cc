// Broadcast, reduce, allgather and reduce-scatter of device memory: the halves of an allreduce, by
// the same agreement, mapping and executor. Only where all ranks have device memory: else all
// decline.
#include "engine/flags.h"
#include "engine/operation.h"

namespace hetcoll {

std::size_t Operation::share_bytes() const noexcept
{
    return bytes_ / static_cast<std::size_t>(engine_.p2p().size);
}

// Where this rank's buffers are, and which vectors the schedule works on. A rank that cannot take
// part, with holes in its datatype too, says so in the agreement.
void Operation::classify_collective()
{
    bytes_ = call_.count * element_bytes(kind());
    PointerInfo first, second;
    find(call_.send, first);
    second = first;
    if (call_.recv != nullptr && call_.recv != call_.send) {
        find(call_.recv, second);
    }
    if (!failure_.ok()) {
        flags_ = kFailed;
        return;
    }
    if (call_.dense == 0 || !on_device(first) || !on_device(second) ||
        first.device != second.device || first.context != second.context) {
        flags_ = kHostMemory;
        return;
    }
    flags_ = kDeviceMemory;
    send_ = first;
    recv_ = second;
    wait_for_contexts();
    Status problem = borrow_bounce(recv_, first.legacy_ipc && second.legacy_ipc, true);
    if (problem.ok()) {
        problem = place_vectors();
    }
    if (!problem.ok()) {
        flags_ |= kMustStage;
        log(process_.log(), 2, "hetcoll: a rank cannot use its GPU now, so a call is staged: %s",
            problem.message().c_str());
    }
}

// An allgather and a broadcast work in place. A reduction writes sums on its way into a whole
// vector, which only the root of a reduce has.
Status Operation::place_vectors()
{
    const bool in_place = call_.send == call_.recv;
    switch (call_.collective) {
    case HETCOLL_ALLGATHER:
        in_ = out_ = call_.recv;
        send_ = recv_;
        placed_ = in_place;
        return {};
    case HETCOLL_BCAST: in_ = out_ = call_.recv; return {};
    case HETCOLL_REDUCE:
        if (call_.recv != nullptr) {
            return {};
        }
        break;
    default: break;
    }
    auto scratch = process_.borrow_scratch(device_->device(), bytes_);
    if (!scratch.ok()) {
        return scratch.take_status();
    }
    scratch_ = std::move(*scratch);
    out_ = scratch_->data();
    Result<PointerInfo> found = process_.pointers().find(out_);
    if (!found.ok()) {
        return found.take_status();
    }
    recv_ = *found;
    return {};
}

void Operation::begin_collective()
{
    choice_ = engine_.collective_choice(bytes_);
    const bool runs = failure_.ok() && (flags_ & (kHostMemory | kMustStage)) == 0;
    if (runs && call_.collective == HETCOLL_ALLGATHER && !placed_) {
        state_ = State::kOwnShare;
        auto *to = static_cast<std::byte *>(call_.recv) +
                   share_bytes() * static_cast<std::size_t>(engine_.p2p().rank);
        start_copy(to, call_.send, share_bytes(), recv_);
        return;
    }
    share();
}

// The share of a reduce-scatter to where the caller wants it. `result` is the schedule's vector.
void Operation::copy_share_out(const void *result)
{
    const auto *from = static_cast<const std::byte *>(result);
    state_ = State::kCopyOut;
    if (call_.collective == HETCOLL_REDUCE_SCATTER) {
        start_copy(call_.recv, from + share_bytes() * static_cast<std::size_t>(engine_.p2p().rank),
                   share_bytes(), recv_);
    } else if (result != out_ && scratch_ == nullptr) {
        start_copy(out_, from, bytes_, recv_);
    }
}

} // namespace hetcoll
