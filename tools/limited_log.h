// The log of hetcoll_aggregator about its workers and strangers: a limited number of lines a
// minute, whatever they do.
#pragma once

#include "aggregator/tcp_wire.h"
#include "tools/line_output.h"

#include <cstdint>
#include <string>
#include <utility>

namespace hetcoll {

class LimitedLog {
public:
    // `to` lives as long as the log.
    LimitedLog(LineOutput &to, const char *prefix) : to_(to), prefix_(prefix) {}
    // `now`: seconds of any clock. Lines that are too many are counted; the next one that is said
    // tells how many.
    void say(const std::string &line, double now);
    // One line if there are more of those who did not show the key, at most once a minute.
    void tell_of(const GuestCounters &guests, double now);

private:
    LineOutput &to_;
    const char *prefix_;
    double minute_ = 0; // when it began
    int lines_ = 0;     // in it
    std::uint64_t left_out_ = 0;
    double told_ = 0;
    bool has_told_ = false;
    GuestCounters last_;
};

} // namespace hetcoll
