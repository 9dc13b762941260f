// The waits of a call before it sends anything to other ranks.
#include "engine/call/protocols.h"

namespace hetcoll {

// By all ranks together.
bool poll_pages(Call &call)
{
    Communicator &comm = call.comm;
    if (comm.is_ready() || comm.p2p().size == 1) {
        return true;
    }
    switch (comm.make_ready(call.args->tag)) {
    case Progress::kPending: return false;
    case Progress::kFailed: call.end(comm.group().code()); return false;
    case Progress::kDone: break;
    }
    if (!comm.is_ready()) {
        log(call.report.log(), 0,
            "hetcoll: %s fails on all ranks of communicator %u with MPI_ERR_NO_MEM: one of them "
            "has no host memory to begin its first call",
            call.mpi_name(), comm.p2p().comm_id);
        call.ended = HETCOLL_ERROR_NO_MEMORY;
    }
    return comm.is_ready();
}

namespace {

bool poll_ready(Call &call)
{
    return poll_pages(call) && poll_cpu(call) && (!needs_bounce(call) || try_borrow_bounce(call)) &&
           (!call.buffers.two_contexts() || poll_work(call, call.buffers.send));
}

} // namespace

Polled make_ready(Call &call) noexcept { return Polled({poll_ready, call}); }

} // namespace hetcoll
