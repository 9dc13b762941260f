// What ranks do while they wait for one that is known to come late: they add up among themselves.
//
// The opening agreement is not over, and the late rank may still say that it goes another way: so
// nothing that the call would need then is overwritten, and what was begun can be dropped. A rank
// begins when it sees that all others but the late one have come, and that with device memory which
// is mapped already; whether the others have begun as well does not matter to it, because reading
// mapped memory binds nobody.
#include "engine/flags.h"
#include "engine/operation.h"

namespace hetcoll {

// Of a call that begins without another rank.
bool Operation::is_early() const noexcept
{
    return !is_collective() && choice_.algorithm == Algorithm::kWeighted &&
           choice_.late != kNoRank && choice_.late != engine_.p2p().rank;
}

// Of a small call that comes right after a larger one everybody is there at once.
Arrivals *Operation::arrivals() noexcept
{
    return is_collective() || is_small() ? nullptr : engine_.arrivals();
}

void Operation::note_arrival() noexcept
{
    if (arrived_ns_ != 0) {
        arrivals()->note_wait(now_ns() - arrived_ns_);
        arrived_ns_ = 0;
    }
}

void Operation::run_early()
{
    if (early_) {
        static_cast<void>(engine_.executor().step());
        return;
    }
    if (!may_begin_) {
        return;
    }
    const auto said = meeting_.flags_without(engine_.group().local_number(choice_.late));
    if (said) {
        may_begin_ = false;
        if (*said == kDeviceMemory) {
            begin_early();
        }
    }
}

void Operation::begin_early()
{
    const Engine::Linked &linked = this->linked();
    Result<bool> mapped =
        device_->enter().ok()
            ? engine_.mapped().map(choice_.algorithm, &linked.schedule, choice_.late)
            : Result<bool>(false);
    if (!mapped.ok() || !*mapped || linked.steps.empty()) {
        return; // the agreement is waited for, as always
    }
    const Vectors vectors{
        .send = engine_.mapped().input(),
        .recv = engine_.mapped().output(),
        .count = call_.count,
        .op = op(),
        .kind = kind(),
        .user = {},
    };
    engine_.executor().start(linked.schedule, engine_.p2p(), call_.tag, *device_, vectors,
                             choice_.chunk_bytes, false, engine_.mapped().peers(linked.steps));
    engine_.executor().hold_all_but(kEarlyChannels);
    early_ = true;
    process_.count(HETCOLL_CALLS_EARLY);
}

// True if the call goes another way than the one that was begun.
bool Operation::stop_early(Flags all)
{
    const Flags other_ways = static_cast<Flags>(~(kDeviceMemory | kNewBuffers));
    if (!early_ || state_ == State::kDone || (all & other_ways) == 0) {
        return false;
    }
    stopped_in_ = state_;
    state_ = State::kStop;
    engine_.executor().stop();
    return true;
}

} // namespace hetcoll
