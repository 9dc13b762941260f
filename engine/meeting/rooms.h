// The rooms of a node's ranks, for vectors that the control page has no room for: made once, in two
// meetings before the first that needs them.
#pragma once

#include "engine/meeting/control_page.h"
#include "engine/meeting/flag_set.h"
#include "engine/meeting/node_ranks.h"
#include "engine/meeting/page_problem.h"

#include <cstdint>

namespace hetcoll {

class Rooms {
public:
    // All outlive it.
    Rooms(const NodeRanks &ranks, ControlPage &page, PageProblem &problem) noexcept
        : ranks_(ranks), page_(page), problem_(problem)
    {
    }

    // The same on every rank.
    [[nodiscard]] bool exist() const noexcept { return state_ == State::kMade; }
    [[nodiscard]] bool may_be_made() const noexcept { return state_ == State::kUntried; }
    // Before the ranks come to a meeting, when all have come, and when all know whether some rank
    // has said what that returned.
    void offer() noexcept;
    [[nodiscard]] Flags attach() noexcept;
    void settle(Flags all) noexcept;

private:
    enum class State : std::uint8_t { kUntried, kMade, kNone };

    void make();
    [[nodiscard]] ControlPage::Slot &own_slot() const noexcept
    {
        return page_.slot(ranks_.local_rank());
    }

    const NodeRanks &ranks_;
    ControlPage &page_;
    PageProblem &problem_;
    ShmBudget::Loan loan_;
    State state_ = State::kUntried;
};

} // namespace hetcoll
