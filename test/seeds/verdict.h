// Judges each call when it ends on a rank, the results of all ranks together, and memory
// that the program has back. A fault ends the run (report.h).
#pragma once

#include "test/seeds/world.h"

#include <vector>

namespace hetcoll::test {

class Verdict {
public:
    explicit Verdict(const World &world);

    // A call of that rank is over, and its buffers are as it has left them.
    void of_call(int rank, const Running &call);
    // Buffers that no call has still hold what the program put there.
    static void of_memory(int rank, const Buffer &buffer);
    // Calls that have not ended by now never will.
    void of_all_calls() const;

private:
    static constexpr int kNone = -1000000;
    struct Outcome { // of a call on a rank
        int result = kNone;
        bool lost_result = false;
    };

    [[nodiscard]] bool may_fail() const;
    void of_outcomes(std::size_t call) const;
    void of_errors(std::size_t call) const;

    const World &world_;
    std::vector<std::vector<Outcome>> outcomes_; // of each call: of each rank
};

} // namespace hetcoll::test
