// The actions of an actor of a simulation. Time passes in wait() and sleep_us() only.
#pragma once

#include "price/rank.h"

#include <functional>
#include <utility>

namespace hetcoll {

// Each begins something and returns immediately; wait() gives the token back when it has ended.
class Activities : public Transfers {
public:
    // Copies between the hosts of two actors; neither need know.
    virtual void copy(int from, int to, double bytes, int token) = 0;

    // Waits until one of them has ended. Requires that some have not.
    [[nodiscard]] virtual int wait() = 0;
    virtual void sleep_us(double us) = 0;
};

struct SimActor {
    int host;
    std::function<void(Activities &)> body;
};

// Runs a rank to its end.
inline void run_to_end(SimRank rank, Activities &activities)
{
    for (bool more = rank.begin(activities); more;) {
        more = rank.end(activities.wait());
    }
}

} // namespace hetcoll
