// coll_hetcoll_fixed_point: the floats of a sum become integers in the receive buffer, the call
// sums these in place, by whatever way any integers take, and at its end they become floats again.
// So the result has the same bits whatever the algorithm, and the rest of an operation need not
// know. Each rank converts its own numbers; whether one of them is out of range all learn in the
// first meeting.
#include "engine/flags.h"
#include "engine/operation.h"

#include <algorithm>
#include <memory>
#include <new>

namespace hetcoll {

// The call that is made instead of the one that was given: an in-place sum of integers. Open MPI
// cannot make it, so it is never asked to.
hetcoll_call Operation::integer_call(const hetcoll_call &given) noexcept
{
    hetcoll_call call = given;
    call.send = given.recv;
    call.kind = static_cast<int>(integer_of(static_cast<ElementKind>(given.kind)));
    call.host_allreduce = nullptr;
    return call;
}

// Where the numbers come from, and whether this rank's GPU can convert them.
void Operation::classify_fixed()
{
    how_ = fixed_point(real_kind(), engine_.fixed_point_bits(), engine_.p2p().size);
    record_.kind = given_.kind;
    given_send_ = recv_;
    if (given_.send != given_.recv) {
        find(given_.send, given_send_);
    }
    if (failure_.ok() && on_device(given_send_) && process_.settings().sync_context != 0) {
        note(process_.synchronize(given_send_));
    }
    gpu_converts_ = false;
    if (failure_.ok() && device_ != nullptr && on_device(recv_) && device_->enter().ok()) {
        const Status loaded = device_->device()->prepare_fixed_point(real_kind());
        gpu_converts_ = loaded.ok();
        if (!loaded.ok()) {
            log(process_.log(), 1,
                "hetcoll: a rank converts to fixed point on the host, which is slower: %s",
                loaded.message().c_str());
        }
    }
    if (!failure_.ok()) {
        flags_ = kFailed;
    }
}

// Not in the memory and context in which the result is: copied there before it is converted.
bool Operation::is_foreign_input() const noexcept
{
    return given_.send != given_.recv &&
           (on_device(given_send_) != on_device(recv_) ||
            (on_device(recv_) && (!gpu_converts_ || given_send_.device != recv_.device ||
                                  given_send_.context != recv_.context)));
}

// As advance(), of the states before the first meeting.
bool Operation::to_fixed_point()
{
    if (state_ == State::kForeignInput) {
        if (failure_.ok() &&
            on_device(given_send_)) { // no stream of ours is ordered after its work
            Result<bool> done = process_.legacy_work_done(given_send_);
            if (done.ok() && !*done) {
                return false;
            }
            note(done.ok() ? Status() : done.take_status());
        }
        if (failure_.ok()) {
            start_copy(call_.recv, given_.send, bytes_, on_device(recv_) ? recv_ : given_send_);
        }
        state_ = State::kToFixed;
        return true;
    }
    if (!copy_done() || !kernel_done()) {
        return false;
    }
    if (!converted_) {
        converted_ = true;
        start_to_fixed();
        return true;
    }
    if (gpu_converts_ && failure_.ok() && device_->out_of_range()) {
        flags_ |= kOutOfRange;
    }
    begin();
    return true;
}

void Operation::begin_to_fixed()
{
    state_ = is_foreign_input() ? State::kForeignInput : State::kToFixed;
    converted_ = false;
}

void Operation::start_to_fixed()
{
    if (!failure_.ok()) {
        return;
    }
    const void *from = is_foreign_input() ? call_.recv : given_.send;
    if (gpu_converts_) {
        Status started = device_->start_to_fixed(real_kind(), call_.recv, from, call_.count, how_);
        kernel_runs_ = started.ok();
        note(std::move(started));
    } else if (on_device(recv_)) {
        note(convert_on_host(true));
    } else if (!to_fixed(real_kind(), call_.recv, from, call_.count, how_)) {
        flags_ |= kOutOfRange;
    }
}

// Instead of the end of an operation that has succeeded: its sum becomes floats.
void Operation::begin_from_fixed() noexcept
{
    state_ = State::kFromFixed;
    if (!on_device(recv_)) {
        from_fixed(real_kind(), call_.recv, call_.recv, call_.count, how_);
    } else if (gpu_converts_) {
        Status started = device_->start_from_fixed(real_kind(), call_.recv, call_.count, how_);
        kernel_runs_ = started.ok();
        note(std::move(started));
    } else {
        note(convert_on_host(false));
    }
}

// Device memory without our kernels, piece by piece. Blocks.
Status Operation::convert_on_host(bool there) noexcept
{
    constexpr std::size_t kPieceBytes = 1u << 20;
    const std::size_t element = element_bytes(real_kind());
    const std::unique_ptr<std::byte[]> piece(new (std::nothrow)
                                                 std::byte[std::min(bytes_, kPieceBytes)]);
    if (piece == nullptr) {
        return error(Errc::kNoMemory, "out of host memory to convert numbers to fixed point");
    }
    for (std::size_t at = 0; at < bytes_; at += kPieceBytes) {
        const std::size_t bytes = std::min(bytes_ - at, kPieceBytes);
        std::byte *const buffer = static_cast<std::byte *>(call_.recv) + at;
        Status copied = process_.copy_blocking(piece.get(), buffer, bytes, recv_);
        if (!copied.ok()) {
            return copied;
        }
        if (!there) {
            from_fixed(real_kind(), piece.get(), piece.get(), bytes / element, how_);
        } else if (!to_fixed(real_kind(), piece.get(), piece.get(), bytes / element, how_)) {
            flags_ |= kOutOfRange;
        }
        copied = process_.copy_blocking(buffer, piece.get(), bytes, recv_);
        if (!copied.ok()) {
            return copied;
        }
    }
    return {};
}

// All ranks do, after the same meeting.
void Operation::fail_out_of_range() noexcept
{
    const int ranks = engine_.p2p().size;
    if (engine_.p2p().rank == 0) {
        log(process_.log(), 0,
            "hetcoll: %s failed, the receive buffer is undefined: an element of some rank is no "
            "number or beyond +-%g, the largest that %d rank%s can add with "
            "coll_hetcoll_fixed_point %d: scale the values down, or set fewer bits",
            mpi_name(), how_.limit / how_.scale, ranks, ranks == 1 ? "" : "s",
            engine_.fixed_point_bits());
    }
    if ((flags_ & kOutOfRange) != 0) {
        log(process_.log(), 1, "hetcoll: rank %d of the communicator has such an element",
            engine_.p2p().rank);
    }
    finish(HETCOLL_ERROR_RANGE);
}

} // namespace hetcoll
