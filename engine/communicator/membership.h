// Whether a rank still takes part in the calls of its communicator.
#pragma once

#include "engine/meeting/node_group.h"

namespace hetcoll {

class Membership {
public:
    // Both outlive it.
    Membership(const hetcoll_p2p &p2p, const NodeGroup &group) noexcept : p2p_(p2p), group_(group)
    {
    }

    // A call has ended on this rank alone: nobody knows at which meeting the others are, so this
    // rank comes to none any more. Further calls return this code immediately.
    void break_off(int code) noexcept { broken_ = code; }
    [[nodiscard]] bool is_left() const noexcept { return broken_ != 0; }
    [[nodiscard]] int broken() const noexcept { return broken_ != 0 ? broken_ : lost(); } // 0: no
    // Why ranks may never come to a meeting: a code of p2p's owner, see hetcoll_p2p::broken. Then a
    // call leaves where it waits.
    [[nodiscard]] int lost() const noexcept
    {
        return p2p_.broken == nullptr ? 0 : p2p_.broken(p2p_.context);
    }
    // Before and after this rank's GPU works on peers' memory. False: a peer has left, so this rank
    // will learn why, and leave too.
    [[nodiscard]] bool may_touch_peers() const noexcept
    {
        return p2p_.broken == nullptr || group_.may_touch_peers();
    }
    void touches_no_peers() const noexcept
    {
        if (p2p_.broken != nullptr) {
            group_.touches_no_peers();
        }
    }

private:
    const hetcoll_p2p &p2p_;
    const NodeGroup &group_;
    int broken_ = 0;
};

} // namespace hetcoll
