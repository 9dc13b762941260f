#include "engine/call/late_ranks.h"

#include "engine/call/protocols.h"
#include "schedule/weighted.h"

namespace hetcoll {

LateRanks::LateRanks(Call &call, const Choice &choice, const Published &published) noexcept
    : call_(call), choice_(choice), arrived_ns_(arrivals_of(call) != nullptr ? now_ns() : 0),
      allowed_(published.announced && begins_early(call, choice) && call.failure.ok() &&
               !call.buffers.input_copied && call.planner.mapped().keeps_input())
{
}

bool LateRanks::begins_early(const Call &call, const Choice &choice) noexcept
{
    return !call.is_collective() && !call.is_attached() &&
           needs(choice.algorithm, Needs::kShares) && choice.late != kNoRank &&
           choice.late != call.comm.p2p().rank;
}

// Ranks that call differently may have chosen differently: nobody waits then.
bool LateRanks::may_have_begun(Flags all) const noexcept
{
    return !call_.is_collective() && needs(choice_.algorithm, Needs::kShares) &&
           choice_.late != kNoRank && !any(all, kUnknownOp | kCallsDiffer);
}

bool LateRanks::step_meeting()
{
    if (call_.step_meeting()) {
        if (arrived_ns_ != 0) {
            arrivals_of(call_)->note_wait(now_ns() - arrived_ns_);
        }
        return true;
    }
    if (call_.ended) {
        return false;
    }
    if (begun_) {
        static_cast<void>(call_.planner.executor().step());
    } else if (allowed_) {
        const auto said =
            call_.meeting.flags_without(call_.comm.group().local_number(choice_.late));
        allowed_ = !said;
        if (said && (*said & ~kMemoryFreed) == kDeviceMemory) {
            begin();
        }
    }
    return false;
}

void LateRanks::begin()
{
    const BuiltSchedule &built = schedule_of(call_, choice_);
    Membership &membership = call_.comm.membership();
    MappedCall &mapped_call = call_.planner.mapped();
    Executor &executor = call_.planner.executor();
    Result<bool> mapped = call_.work.device->enter().ok()
                              ? mapped_call.map(choice_.algorithm, &built.schedule, choice_.late)
                              : Result<bool>(false);
    if (!mapped.ok() || !*mapped || built.local_steps.empty()) {
        return; // the agreement is waited for, as always
    }
    if (!membership.may_touch_peers()) {
        membership.touches_no_peers();
        return;
    }
    const Vectors vectors{
        .send = mapped_call.input(),
        .recv = mapped_call.output(),
        .count = call_.args->count,
        .op = call_.op(),
        .kind = call_.kind(),
        .user = {},
    };
    executor.start(built.schedule, call_.comm.p2p(), call_.args->tag, *call_.work.device, vectors,
                   choice_.chunk_bytes, false, mapped_call.peers(built.local_steps));
    executor.hold_all_but(kEarlyChannels);
    begun_ = call_.work.executor_runs = true;
    call_.report.count(HETCOLL_CALLS_EARLY);
}

bool LateRanks::stop(Flags all) noexcept
{
    if (!begun_ || !any(all, ~(kDeviceMemory | kNewBuffers | kMemoryFreed))) {
        return false;
    }
    call_.planner.executor().stop();
    return true;
}

bool LateRanks::stopped()
{
    if (call_.planner.executor().step() == Progress::kPending) {
        return false;
    }
    begun_ = call_.work.executor_runs = false;
    call_.comm.membership().touches_no_peers();
    call_.note(call_.planner.executor().take_failure());
    return true;
}

bool LateRanks::go_on() noexcept
{
    if (begun_) {
        call_.planner.executor().open_all(!call_.failure.ok());
    }
    return begun_;
}

} // namespace hetcoll
