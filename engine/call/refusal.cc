#include "engine/call/refusal.h"

#include "engine/meeting/flags.h"

namespace hetcoll {

std::optional<int> Refusal::step()
{
    Meeting &meeting = comm_.meeting();
    if (!meets_) {
        if (!comm_.is_ready() && comm_.p2p().size > 1) {
            switch (comm_.make_ready(tag_)) {
            case Progress::kPending: return std::nullopt;
            case Progress::kFailed:
                comm_.membership().break_off(comm_.group().code());
                return comm_.group().code();
            case Progress::kDone: break;
            }
            if (!comm_.is_ready()) { // another rank has none, too
                return HETCOLL_ERROR_NO_MEMORY;
            }
        }
        if (!comm_.group().hears_refusals()) {
            end_job();
            return HETCOLL_ERROR_NO_MEMORY;
        }
        meets_ = true;
        comm_.group().own_call().refuse(why_);
        comm_.counters().count(HETCOLL_AGREEMENTS);
        meeting.start(comm_.group(), comm_.messages(), tag_, comm_.freed().tell());
    }
    switch (meeting.step()) {
    case Progress::kPending: return std::nullopt;
    case Progress::kFailed:
        comm_.abandon_messages();
        comm_.membership().break_off(meeting.code());
        return meeting.code();
    case Progress::kDone: break;
    }
    if (any(meeting.flags(), kMemoryFreed)) {
        comm_.freed().hear();
    }
    return any(meeting.flags(), kCallsDiffer) ? comm_.same_calls().fail_differing(meeting)
                                              : HETCOLL_ERROR_NO_MEMORY;
}

// The others wait for this rank. Not for one whose stream is being captured, because most programs
// capture on all ranks: then nobody waits.
void Refusal::end_job() const noexcept
{
    const hetcoll_p2p &p2p = comm_.p2p();
    if (why_ == HETCOLL_HAS_NO_MEMORY && p2p.size > 1 && p2p.end_job != nullptr) {
        log(comm_.log(), 0,
            "hetcoll ends the job: rank %d of communicator %u has no host memory to begin a call, "
            "and with coll_hetcoll_check off the other ranks cannot be told, and would wait for it",
            p2p.rank, p2p.comm_id);
        p2p.end_job(p2p.context, HETCOLL_ERROR_NO_MEMORY);
    }
}

} // namespace hetcoll
