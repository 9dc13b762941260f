#include "engine/call/refusal.h"

#include "engine/meeting/flags.h"

namespace hetcoll {

std::optional<int> Refusal::step()
{
    Meeting &meeting = engine_.meeting();
    if (!meets_) {
        if (!engine_.is_ready() && engine_.p2p().size > 1) {
            switch (engine_.make_ready(tag_)) {
            case Progress::kPending: return std::nullopt;
            case Progress::kFailed:
                engine_.membership().break_off(engine_.group().code());
                return engine_.group().code();
            case Progress::kDone: break;
            }
            if (!engine_.is_ready()) { // another rank has none, too
                return HETCOLL_ERROR_NO_MEMORY;
            }
        }
        if (!engine_.group().hears_refusals()) {
            return HETCOLL_ERROR_NO_MEMORY;
        }
        meets_ = true;
        engine_.group().refuse_call(why_);
        engine_.process().counters().count(HETCOLL_AGREEMENTS);
        meeting.start(engine_.group(), engine_.messages(), tag_, engine_.freed().tell());
    }
    switch (meeting.step()) {
    case Progress::kPending: return std::nullopt;
    case Progress::kFailed:
        engine_.abandon_messages();
        engine_.membership().break_off(meeting.code());
        return meeting.code();
    case Progress::kDone: break;
    }
    if (any(meeting.flags(), kMemoryFreed)) {
        engine_.freed().hear();
    }
    return any(meeting.flags(), kCallsDiffer) ? engine_.fail_differing(meeting)
                                              : HETCOLL_ERROR_NO_MEMORY;
}

} // namespace hetcoll
