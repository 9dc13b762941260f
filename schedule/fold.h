// Makes a power of two out of any number of ranks. With r ranks left over, the first 2r ranks of
// the team form r pairs of neighbours: the even one hands its part to the odd one, sits out, and
// takes the result at the end. Neighbours, so that the groups whose parts are together stay
// consecutive in the team.
#pragma once

#include "schedule/rounds.h"

#include <bit>

namespace hetcoll {

class Fold {
public:
    // The team's ranks outlive the fold.
    explicit Fold(const Team &team)
        : team_(team), active_(static_cast<int>(std::bit_floor(team.ranks.size()))),
          left_over_(static_cast<int>(team.ranks.size()) - active_)
    {
    }

    // The ranks that take part between begin() and end(): a power of two.
    [[nodiscard]] int active_ranks() const noexcept { return active_; }
    [[nodiscard]] bool sits_out() const noexcept { return paired() && team_.place % 2 == 0; }

    // Number of this rank among the active ones, and the rank of such a number. Both keep the order
    // of the team. active_number() requires !sits_out().
    [[nodiscard]] int active_number() const noexcept
    {
        return paired() ? team_.place / 2 : team_.place - left_over_;
    }
    [[nodiscard]] int rank_of(int number) const noexcept
    {
        return team_.ranks[number < left_over_ ? 2 * number + 1 : number + left_over_];
    }

    // How many rounds there are in all for `inner` rounds among the active ranks: a first and a
    // last one more if ranks are left over.
    [[nodiscard]] static int round_count(int size, int inner) noexcept
    {
        return std::has_single_bit(static_cast<unsigned>(size)) ? inner : inner + 2;
    }
    // Messages of the whole range that one rank of a pair sends, and that it reduces.
    [[nodiscard]] static int messages(int size) noexcept
    {
        return std::has_single_bit(static_cast<unsigned>(size)) ? 0 : 1;
    }
    // Round `number` of them; inner_round(i) is round i of an active rank.
    template <class InnerRound> [[nodiscard]] Round round(int number, int inner, BlockRange all,
                                                          const InnerRound &inner_round) const
    {
        const int before = left_over_ == 0 ? 0 : 1;
        if (number < before) {
            return pair_round({StepKind::kSend, StepKind::kRecvReduce}, all);
        }
        if (number == inner + before) {
            return pair_round({StepKind::kRecv, StepKind::kSend}, all);
        }
        return sits_out() ? Round{} : inner_round(number - before);
    }

private:
    struct Pair {
        StepKind even, odd; // what the two do
    };

    [[nodiscard]] bool paired() const noexcept { return team_.place < 2 * left_over_; }

    [[nodiscard]] Round pair_round(Pair pair, BlockRange all) const
    {
        if (!paired()) {
            return {};
        }
        return {{sits_out() ? pair.even : pair.odd, team_.ranks[team_.place ^ 1], all}};
    }

    Team team_;
    int active_, left_over_;
};

} // namespace hetcoll
