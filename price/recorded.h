// Schedules that runs at several sizes, with several chunks and by several rules have in common.
#pragma once

#include "plan/build_schedule.h"
#include "price/feed.h"

#include <deque>
#include <memory>
#include <vector>

namespace hetcoll {

class RecordedSchedules {
public:
    struct Of {                                                 // one schedule
        Way way;                                                // resolved
        std::vector<std::shared_ptr<const ChannelSteps>> ranks; // null: not asked for yet
        // How many vectors cross each link of the machine; empty: not known.
        std::vector<double> crossing;
        double least_us = 0; // a byte of the vector, as the fullest link takes it, if that is known
        // A lower bound for messages that wait for each other; -1: not known. Calls of one Pricer
        // have one path and one size of elements.
        double latencies_us = -1;
    };
    // Stays where it is.
    [[nodiscard]] Of &find(const Way &way, int ranks);

private:
    std::deque<Of> all_;
};

} // namespace hetcoll
