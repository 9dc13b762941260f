// Why a rank has no control page, or no rooms: the budget of its process, or an error.
#pragma once

#include "base/status.h"
#include "transport/shm_budget.h"

#include <cstddef>
#include <utility>

namespace hetcoll {

class PageProblem {
public:
    // Outlives it; null: there is none.
    explicit PageProblem(ShmBudget *budget) noexcept : budget_(budget) {}

    // False: the process cannot afford its part of such memory of `ranks` ranks.
    [[nodiscard]] bool can_afford(std::size_t bytes, int ranks, ShmBudget::Loan &loan) noexcept
    {
        short_ = budget_ != nullptr && !budget_->take(ShmBudget::part(bytes, ranks), loan);
        return !short_;
    }
    void note(Status why) noexcept { why_ = std::move(why); }
    // The budget of some rank of this node is the reason, and this one is to say so.
    void note_shortage(bool says_so) noexcept { says_short_ = says_so; }

    [[nodiscard]] bool is_short() const noexcept { return short_; }
    [[nodiscard]] bool exists() const noexcept { return short_ || !why_.ok(); }
    [[nodiscard]] Status take() noexcept { return std::exchange(why_, {}); }
    // True once.
    [[nodiscard]] bool take_shortage() noexcept { return std::exchange(says_short_, false); }
    [[nodiscard]] bool has_shortage() const noexcept { return says_short_; }

private:
    ShmBudget *budget_;
    bool short_ = false, says_short_ = false;
    Status why_;
};

} // namespace hetcoll
