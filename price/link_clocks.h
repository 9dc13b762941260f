// Simulated ranks without threads: a schedule's time on the links, in some ten thousand operations
// where SimGrid needs a million. Events are taken in the order of time, and those of one time in
// the order in which they were made.
#pragma once

#include "machine/routes.h"
#include "price/rank.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace hetcoll {

// When a transfer may use the links of its way. Its latency comes first.
enum class LinkRule : std::uint8_t {
    // Each of them when that link has done with what came before, whatever the others do. No
    // transfer ever keeps a link that it does not use, so this is the least that a schedule takes.
    kEachAlone,
    // All of them together, when all have a place: the first to arrive begins first, and keeps
    // its
    // fast links as long as its slowest one. A link that carries several concurrently
    // (SimLink::flows)
    // gives each the same share, whatever it makes of it. Links without limit are as above.
    kAllTogether,
};

class LinkClocks {
public:
    // `routes` outlives it.
    //
    // `mirrored`: the actors are those of one of many nodes that do all the same. Their number n
    // plus i is the actor of another node that does what actor i does, and 2 n plus i that of a
    // node of another rack. For each message of an actor to it, one like the sender sends to actor
    // i: no other node need be run.
    LinkClocks(Routes &routes, LinkRule rule, bool mirrored = false);
    ~LinkClocks();

    // An actor on a host, in the order of their numbers.
    void add(int host, SimRankPlan plan);

    // How many bytes each link will carry, at least: a run that has too much left is given up
    // before its time has come. Without, nothing is known of that.
    void expect(const std::vector<double> &bytes);

    struct Outcome {
        double us = 0;          // until the last actor was done, or until it was given up
        bool all_ended = false; // false: given up, or the actors wait for each other
        bool as_alone = false;  // no transfer waited for a place, so kEachAlone says little else
        std::uint64_t transfers = 0;
    };
    // Once. Gives up what takes longer than `most_us`, as soon as that is known.
    [[nodiscard]] Outcome run(double most_us = std::numeric_limits<double>::infinity());

private:
    class Clocks;
    std::unique_ptr<Clocks> clocks_;
};

} // namespace hetcoll
