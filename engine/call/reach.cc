// Whose memory can be read: the ranks find out, and what changes that later.
#include "engine/call/protocols.h"

#include <utility>

namespace hetcoll {
namespace {

// That its peers do not know: a second GPU, or a context that was made after a reset.
bool has_new_device(const Call &call)
{
    const Peers &peers = call.planner.peers();
    return !call.work.uses_reserved && peers.found().device != nullptr && call.failure.ok() &&
           call.work.device != nullptr && on_device(call.buffers.recv) &&
           !any(call.flags, kMustStage) && !is_known_device(call);
}

} // namespace

// All ranks find out again then; not again and again, because that takes long.
void tell_new_device(Call &call)
{
    if (!has_new_device(call)) {
        return;
    }
    if (call.planner.peers().may_move()) {
        call.flags |= kNewDevice;
    } else if (call.report.first_time(Notice::kManyDevices)) {
        log(call.report.log(), 0,
            "hetcoll: the GPU or context of a rank's buffers changes from call to call, so such "
            "calls go through host memory, which is slower: use a communicator for each");
    }
}

// A buffer of a peer costs that peer a copy in further calls. Nothing can be done about memory
// that already stands for one.
void note_unmapped(Call &call, const Status &problem)
{
    const auto [rank, buffer] = call.planner.mapped().unmapped();
    call.flags |= kNoMapping;
    if (buffer == nullptr) {
        log(call.report.log(), 1, "hetcoll: a call goes by messages: %s",
            problem.message().c_str());
    } else if (buffer->stands_in) {
        call.flags |= kNeverMap;
        log(call.report.log(), 0,
            "hetcoll: memory of another GPU cannot be mapped, so this communicator's data goes "
            "through host memory, which is slower: %s",
            problem.message().c_str());
    } else {
        log(call.report.log(), call.report.first_time(Notice::kUnmapped) ? 0 : 1,
            "hetcoll: a buffer of rank %d, in %llu bytes of device memory at %#llx, cannot be "
            "mapped, so that rank copies it in further calls, which is slower: %s",
            rank, static_cast<unsigned long long>(buffer->bytes),
            static_cast<unsigned long long>(buffer->base), problem.message().c_str());
    }
}

// Who queues a call looks itself: no driver call is made while a stream waits for the host.
void Call::look_for_freed(bool waits) noexcept
{
    if (!is_queued() && !std::exchange(looked, true)) {
        waits ? comm.freed().look() : comm.freed().look_sometimes();
    }
}

bool peers_are_known(const Call &call) noexcept { return call.planner.peers().known(); }

bool is_known_device(const Call &call) noexcept
{
    return call.planner.peers().is_known_device(*call.work.device->device());
}

Carrier *carrier_of(const Call &call, const Choice &choice) noexcept
{
    return call.planner.peers().carrier_of(choice);
}

void start_finding_peers(Call &call)
{
    Communicator &comm = call.comm;
    call.planner.peers().start(call.buffers.device(), *call.work.device, comm.messages(),
                               call.args->tag);
}

bool poll_peers(Call &call)
{
    if (call.must_not_wait()) {
        return false;
    }
    Peers &peers = call.planner.peers();
    switch (peers.step()) {
    case Progress::kPending: return false;
    case Progress::kFailed: call.end(peers.code()); return false;
    case Progress::kDone: return true;
    }
    return false;
}

} // namespace hetcoll
