// Who goes on next: ranks, messages, copies and kernels, and what goes wrong at its turn.
#pragma once

#include "test/seeds/verdict.h"
#include "test/seeds/witness.h"
#include "test/seeds/world.h"
#include "test/unit/failing_allocations.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace hetcoll::test {

class Scheduler {
public:
    Scheduler(World &world, Verdict &verdict, Random &random);

    // To the end of all calls, or of those that can end.
    void run();

private:
    void go_on();
    void step(int number);
    void step_queue(int number, OperationQueue &queue);
    void end_calls(int number);
    void make_trouble();
    void tell_of_trouble();
    void break_later();
    [[nodiscard]] int some_rank();
    [[nodiscard]] bool is_stuck();

    World &world_;
    Verdict &verdict_;
    Random &random_;
    Witness witness_;
    std::optional<FailingAllocations> shortage_;
    unsigned weights_ = 0;
    std::vector<std::pair<std::size_t, int>> breaks_; // when a rank learns of trouble
    std::size_t open_ = 0, changed_ = 0; // open calls, and the turn in which they changed
};

} // namespace hetcoll::test
