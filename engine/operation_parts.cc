// What the states of an operation have in common: copies, meetings, and its end.
#include "engine/flags.h"
#include "engine/operation.h"

namespace hetcoll {

void Operation::start_copy(void *to, const void *from, std::size_t bytes, const PointerInfo &device)
{
    if (device_ == nullptr) {
        note(process_.copy_blocking(to, from, bytes, device));
        return;
    }
    Status started = device_->start_copy(to, from, bytes);
    if (started.ok()) {
        copying_ = true;
    } else {
        note(process_.copy_blocking(to, from, bytes, device));
    }
}

bool Operation::is_over(bool &runs, Result<bool> (DeviceBounce::*done)())
{
    if (!runs) {
        return true;
    }
    Result<bool> over = (*device_.*done)();
    if (over.ok() && !*over) {
        return false;
    }
    runs = false;
    note(over.ok() ? Status() : over.take_status());
    return true;
}

bool Operation::copy_done() { return is_over(copying_, &DeviceBounce::copy_done); }
bool Operation::kernel_done() { return is_over(kernel_runs_, &DeviceBounce::kernel_done); }

// True if the meeting is over; with a network failure the operation is over as well.
bool Operation::meeting_done()
{
    switch (meeting_.step()) {
    case Progress::kPending: return false;
    case Progress::kFailed: network_failed(meeting_.code()); return true;
    case Progress::kDone: break;
    }
    return true;
}

// In a meeting.
void Operation::network_failed(int code)
{
    leave_context();
    static_cast<void>(device_.release()); // a message may still arrive in its memory
    engine_.abandon_messages();
    finish(code);
}

const Engine::Linked &Operation::linked()
{
    return is_collective() ? engine_.collective_schedule(call_.collective, call_.root)
                           : engine_.schedule(choice_, bytes_);
}

void Operation::note(Status status) noexcept
{
    if (!status.ok() && failure_.ok()) {
        failure_ = std::move(status);
    }
}

void Operation::finish(int result) noexcept
{
    if (fixed_ && result == HETCOLL_SUCCESS && state_ != State::kFromFixed) {
        begin_from_fixed();
        return;
    }
    state_ = State::kDone;
    result_ = result;
    if (result != HETCOLL_SUCCESS && result != HETCOLL_DECLINED) {
        process_.count(HETCOLL_CALLS_FAILED);
    }
    end_record(result);
}

Flags Operation::flags_to_tell() const noexcept
{
    return failure_.ok() ? flags_ : static_cast<Flags>(flags_ | kFailed);
}

void Operation::fail_together() noexcept
{
    engine_.forget_peers();
    finish_failed();
}

void Operation::finish_failed()
{
    log(process_.log(), 0, "hetcoll: %s failed, the receive buffer is undefined: %s", mpi_name(),
        failure_.ok() ? "a driver call failed on another rank, which says more"
                      : failure_.message().c_str());
    const bool memory = !failure_.ok() && failure_.code() == Errc::kNoMemory;
    finish(memory ? HETCOLL_ERROR_NO_MEMORY : HETCOLL_ERROR_DEVICE);
}

} // namespace hetcoll
