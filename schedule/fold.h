// Makes a power of two out of any number of ranks. With r ranks left over, the first 2r ranks form
// r pairs of neighbours: the even rank hands its part to the odd one, sits out, and takes the
// result at the end. Neighbours, so that the groups whose parts are together stay consecutive
// ranks.
#pragma once

#include "schedule/builder.h"

#include <bit>

namespace hetcoll {

class Fold {
public:
    Fold(int rank, int size)
        : rank_(rank), active_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))),
          left_over_(size - active_)
    {
    }

    // The ranks that take part between begin() and end(): a power of two.
    [[nodiscard]] int active_ranks() const noexcept { return active_; }
    [[nodiscard]] bool sits_out() const noexcept { return paired() && rank_ % 2 == 0; }

    // Number of this rank among the active ones, and the rank of such a number. Both keep the order
    // of the ranks. active_number() requires !sits_out().
    [[nodiscard]] int active_number() const noexcept
    {
        return paired() ? rank_ / 2 : rank_ - left_over_;
    }
    [[nodiscard]] int rank_of(int number) const noexcept
    {
        return number < left_over_ ? 2 * number + 1 : number + left_over_;
    }

    void begin(ScheduleBuilder &to, BlockRange all) const
    {
        if (sits_out()) {
            to.send(rank_ + 1, all);
        } else if (paired()) {
            to.recv_reduce(rank_ - 1, all);
        }
    }

    void end(ScheduleBuilder &to, BlockRange all) const
    {
        if (sits_out()) {
            to.recv(rank_ + 1, all);
        } else if (paired()) {
            to.send(rank_ - 1, all);
        }
    }

private:
    [[nodiscard]] bool paired() const noexcept { return rank_ < 2 * left_over_; }

    int rank_, active_, left_over_;
};

} // namespace hetcoll
