#include "engine/call/operation.h"

#include "base/lost.h"
#include "engine/call/protocols.h"
#include "engine/process/memory_reserve.h"

#include <cstring>
#include <new>

namespace hetcoll {

Operation::Operation(Communicator &comm, const hetcoll_call &call, Start start, Gate *gate) noexcept
    : given_(call), gate_(gate), call_(comm, call, start == Start::kPersistent)
{
}

Operation::~Operation()
{
    drop_protocol();
    call_.classified.reset();
    call_.give_back(result_);
}

bool Operation::may_begin()
{
    if (gate_ == nullptr) {
        return true;
    }
    try {
        Result<bool> open = gate_->is_open();
        if (open.ok()) {
            return *open;
        }
        call_.note(open.take_status());
    } catch (const std::bad_alloc &) {
        call_.note(Status::out_of_memory());
    }
    return true;
}

void Operation::begin()
{
    begun_ = true;
    meetings_before_ = call_.comm.group().meetings();
    const bool has_frames = call_.borrow_frames();
    if (!MemoryReserve::fill()) {
        call_.note(Status::out_of_memory()); // before this rank has promised anything
    }
    call_.comm.begin_call(given_, mpi_name());
    call_.report.begin(given_);
    call_.work.prepared = gate_ != nullptr ? gate_->prepared() : nullptr;
    if (!has_frames) {
        start_refusal();
        return;
    }
    protocol_ = protocol_of(call_, given_);
    protocol_.start();
}

// As far as it can go now.
bool Operation::run()
{
    if (!begun_) {
        begin();
    }
    if (refusal_) {
        const auto code = call_.poll_copy() ? refusal_->step() : std::nullopt;
        if (code) {
            finish(*code);
        }
        return code.has_value();
    }
    const bool is_over = call_.frames.step();
    if (call_.ended) {
        finish(*call_.ended);
        return true;
    }
    if (is_over) {
        finish(protocol_.result());
    }
    return is_over;
}

// The others wait for this rank in the call's first meeting.
bool Operation::may_refuse() const noexcept
{
    Communicator &comm = call_.comm;
    return comm.is_ready() && comm.group().meetings() == meetings_before_ &&
           comm.group().hears_refusals() && !joins(call_);
}

bool Operation::step()
{
    const UsesReserve uses_reserve;
    if (leaves_ != 0) {
        return leave();
    }
    if (!begun_) {
        if (const int code = call_.comm.membership().broken(); code != 0) {
            refuse(code);
            return leave();
        }
        if (call_.comm.same_calls().has_missed(given_)) {
            call_.report.begin(given_);
            finish(HETCOLL_ERROR_COLLECTIVE);
            return true;
        }
        if (!may_begin()) {
            return false;
        }
    }
    if (call_.work.carrier != nullptr) {
        call_.work.carrier->progress();
    }
    try {
        if (run()) {
            return true;
        }
    } catch (const std::bad_alloc &) {
        if (!may_refuse()) {
            throw;
        }
        protocol_ = {};
        start_refusal();
        return false;
    }
    if (const int code = call_.comm.membership().lost(); code != 0) {
        start_leaving(code);
        return leave();
    }
    if (call_.mapped) {
        call_.planner.mapped().serve();
    }
    look_at_wait();
    call_.work.leave_context();
    return false;
}

void Operation::refuse(int code) noexcept
{
    call_.report.begin(given_);
    log(call_.report.log(), 1,
        "hetcoll: %s fails immediately, because a rank of this communicator has died, it was "
        "revoked, "
        "or a call has ended on this rank alone: shrink or free the communicator",
        mpi_name());
    leaves_ = code;
}

// Wherever the call waits: no rank is waited for any more.
void Operation::start_leaving(int code) noexcept
{
    leaves_ = code;
    const char *const where = place();
    const bool names = where[std::strlen(where) - 1] == ' ';
    log(call_.report.log(), 1,
        "hetcoll: %s ends with an error %s%s, because a rank of communicator %u has died, or one "
        "has revoked it",
        mpi_name(), where, names ? algorithm_of(call_.report.record) : "",
        call_.comm.p2p().comm_id);
    if (call_.work.executor_runs) {
        call_.planner.executor().abandon();
    }
    if (call_.work.prepared != nullptr) {
        call_.work.prepared->skip();
    }
}

// True when nothing touches the call's memory any more: not this rank's GPU, no message, and no
// live peer's GPU. A call that finds the communicator left has nothing to wait for.
bool Operation::leave()
{
    if (call_.comm.membership().is_left()) {
        finish(leaves_);
        return true;
    }
    const bool runs =
        call_.work.executor_runs && call_.planner.executor().step() == Progress::kPending;
    const bool copies = !call_.poll_copy(), reduces = !call_.poll_kernel();
    if (runs || copies || reduces || !call_.comm.departure().step()) {
        call_.work.leave_context();
        return false;
    }
    call_.comm.membership().break_off(leaves_);
    finish(leaves_);
    call_.comm.departure().close_dead();
    return true;
}

std::uint64_t Operation::moves() const noexcept
{
    return call_.frames.waits() + (call_.work.executor_runs ? call_.planner.executor().moves() : 0);
}

void Operation::fail_without_memory() noexcept
{
    log(call_.report.log(), 0, "hetcoll: %s failed: out of host memory", mpi_name());
    lose(std::move(call_.work.host));
    while (call_.work.prepared != nullptr && !call_.poll_kernel()) { // it waits for no other rank
    }
    call_.lose_network(HETCOLL_ERROR_NO_MEMORY);
    finish(HETCOLL_ERROR_NO_MEMORY);
}

void Operation::drop_protocol() noexcept
{
    protocol_ = {}; // with all that it has borrowed
    refusal_.reset();
    call_.frames.use({});
    call_.work.frame_memory.reset();
}

void Operation::finish(int result) noexcept
{
    drop_protocol();
    if (call_.mapped) {
        call_.comm.membership().touches_no_peers(); // however it has ended
    }
    call_.args = &given_;
    result_ = result;
    if (call_.buffers.any_device()) {
        call_.report.tell_gpu(call_.buffers.device());
    }
    call_.report.end(result, call_.flags);
    call_.work.leave_context();
    call_.give_back(result_);
    call_.comm.freed().close();
}

void Operation::rewind() noexcept
{
    set_incomplete();
    begun_ = false;
    leaves_ = 0;
    result_ = HETCOLL_SUCCESS;
    call_.rewind();
}

const char *Operation::mpi_name() const noexcept { return call_.mpi_name(); }

} // namespace hetcoll
