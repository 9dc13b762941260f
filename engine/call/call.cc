#include "engine/call/call.h"

#include "base/lost.h"

#include <utility>

namespace hetcoll {

Published::~Published()
{
    if (planned) {
        planner.mapped().release();
    }
}

bool Buffers::two_contexts() const noexcept
{
    return on_device(send) && on_device(recv) &&
           (send.device != recv.device || send.context != recv.context);
}

bool Buffers::is_foreign() const noexcept
{
    return !in_place() && (on_device(send) != on_device(recv) || two_contexts());
}

void Call::rewind() noexcept
{
    flags = {};
    failure = {};
    ended.reset();
    cpu.rewind();
    work.rewind();
    buffers.input_copied = mapped = closes_later = looked = false;
}

void Call::note(Status status) noexcept
{
    if (!status.ok() && failure.ok()) {
        failure = std::move(status);
    }
}

void CallWork::rewind() noexcept
{
    carrier = nullptr;
    copying = kernel_runs = executor_runs = false;
}

namespace {

// Whether what `runs` stands for is over; a failure of its is noted.
template <class Done> bool is_over(Call &call, bool &runs, const Done &done)
{
    if (!runs) {
        return true;
    }
    Result<bool> over = done();
    if (over.ok() && !*over) {
        return false;
    }
    runs = false;
    call.note(over.ok() ? Status() : over.take_status());
    return true;
}

} // namespace

Linger Call::linger() const noexcept
{
    constexpr unsigned kPollsOfBlocking = 64; // longer than a small copy takes
    if (persistent || is_queued() || args->reduce != nullptr) {
        return {};
    }
    return {.polls = kPollsOfBlocking, .yields = comm.p2p().shares_processor != 0};
}

bool Call::poll_copy()
{
    return is_over(*this, work.copying, [this] { return work.device->copy_done(linger()); });
}
bool Call::poll_kernel()
{
    return is_over(*this, work.kernel_runs, [this] {
        return work.prepared != nullptr ? work.prepared->kernel_done() : work.device->kernel_done();
    });
}

Flags Call::to_tell() noexcept
{
    if (!any(flags, kDeviceMemory)) { // else it looks while its GPU works
        look_for_freed(false);
    }
    return flags | flags_if(!failure.ok(), kFailed) | comm.freed().tell();
}

void Call::start_agreement() noexcept
{
    report.count(HETCOLL_AGREEMENTS);
    meeting.start(comm.group(), comm.messages(), args->tag, to_tell());
}

void Call::start_agreement(std::span<const std::uint64_t> numbers, ReduceOp op, Flags told) noexcept
{
    report.count(HETCOLL_AGREEMENTS);
    meeting.start(comm.group(), comm.messages(), args->tag, numbers, op, told);
}

bool Call::step_meeting() noexcept
{
    switch (meeting.step()) {
    case Progress::kPending: return false;
    case Progress::kFailed: lose_network(meeting.code()); return false;
    case Progress::kDone: break;
    }
    if (any(meeting.flags(), kMemoryFreed)) {
        comm.freed().hear();
    }
    return true;
}

int Call::result() { return failure.ok() || closes_later ? HETCOLL_SUCCESS : fail(); }

const char *Call::mpi_name() const noexcept
{
    if (args->queued == HETCOLL_ATTACHES) {
        return "hetcoll_stream_attach";
    }
    // Only calls that return before they have ended bring a function for user-defined operations.
    if (is_collective() || is_queued() || args->reduce == nullptr) {
        return hetcoll::mpi_name(args->collective);
    }
    return persistent ? "MPI_Allreduce_init" : "MPI_Iallreduce";
}

int Call::fail()
{
    log(report.log(), 0, "hetcoll: %s failed, the receive buffer is undefined: %s", mpi_name(),
        failure.ok() ? "another rank has failed, and says why" : failure.message().c_str());
    const bool memory = !failure.ok() && failure.code() == Errc::kNoMemory;
    return memory ? HETCOLL_ERROR_NO_MEMORY : HETCOLL_ERROR_DEVICE;
}

int Call::fail_together(Flags all)
{
    if (any(all, kCallsDiffer)) {
        return comm.same_calls().fail_differing(meeting);
    }
    if (!any(all, kFailed)) {
        return HETCOLL_ERROR_RANGE;
    }
    forget_peers();
    return fail();
}

void Call::lose_network(int code) noexcept
{
    lose_device();
    comm.abandon_messages();
    end(code);
}

void Call::lose_device() noexcept
{
    if (work.device != nullptr) {
        work.device->finish();
    }
    if (work.carrier != nullptr) {
        work.carrier->abandon();
    }
    work.leave_context();
    lose(std::move(work.device));
}

void CallWork::leave_context() noexcept
{
    if (carrier != nullptr) {
        carrier->bounce->leave();
    }
    if (device != nullptr) {
        device->leave();
    }
}

} // namespace hetcoll
