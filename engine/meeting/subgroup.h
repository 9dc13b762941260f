// Some ranks of a communicator as a communicator of their own: the same messages, other numbers.
#pragma once

#include "base/p2p.h"

#include <vector>

namespace hetcoll {

class Subgroup {
public:
    // `ranks` of the parent, in the order of their new numbers. The parent's table outlives the
    // subgroup. table().rank is -1 on a rank that is not among them: it must not send.
    Subgroup(const hetcoll_p2p &parent, std::vector<int> ranks);
    Subgroup(const Subgroup &) = delete;
    Subgroup &operator=(const Subgroup &) = delete;

    [[nodiscard]] const hetcoll_p2p &table() const noexcept { return table_; }
    [[nodiscard]] const std::vector<int> &ranks() const noexcept { return ranks_; }

private:
    const hetcoll_p2p &parent_;
    std::vector<int> ranks_;
    hetcoll_p2p table_;
};

} // namespace hetcoll
