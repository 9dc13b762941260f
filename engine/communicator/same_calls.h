// Whether the ranks of a communicator make the same calls, and what a rank says and does when they
// do not.
#pragma once

#include "base/log.h"
#include "engine/meeting/meeting.h"
#include "engine/meeting/node_group.h"
#include "engine/types/call.h"

#include <cstdint>

namespace hetcoll {

class SameCalls {
public:
    // Both outlive it.
    SameCalls(const Log &to, NodeGroup &group) noexcept : log_(to), group_(group) {}

    // The control pages are made, or all know that there are none.
    void note_ready() noexcept
    {
        ready_ = true;
        find_step();
    }
    [[nodiscard]] bool is_ready() const noexcept { return ready_; }
    // There are other ranks, and the next call is surely not one that has_missed().
    [[nodiscard]] bool in_step() const noexcept { return in_step_; }

    // Another rank has ended this call by itself, as a meeting has told: it fails here too, without
    // a meeting.
    [[nodiscard]] bool has_missed(const hetcoll_call &call) noexcept
    {
        if (catches_up_ && (call.number == 0 || is_later(call.number, newest_))) {
            catches_up_ = false;
            find_step();
        }
        return catches_up_;
    }
    // The ranks call differently, as that meeting has found. Says so if this rank is to, and
    // returns the error.
    [[nodiscard]] int fail_differing(const Meeting &meeting) noexcept;

    // The group cannot say that a call goes on to Open MPI with the ranks next to this one: an
    // error if one of them has begun another call in its place. Then messages of some ranks may be
    // under way that nobody takes, so no further call goes to Open MPI.
    [[nodiscard]] int look_at_handed_on(CallSignature call) noexcept;

private:
    void find_step() noexcept { in_step_ = ready_ && !catches_up_ && group_.all().size > 1; }
    int fail_handed_on(const CallSignature &own, int rank, const CallSignature &other) noexcept;

    const Log &log_;
    NodeGroup &group_;
    bool ready_ = false;
    bool in_step_ = false;
    bool catches_up_ = false; // calls up to newest_ have ended on some rank
    std::uint32_t newest_ = 0;
    int hands_on_no_more_ = 0; // but fails with this error
};

} // namespace hetcoll
