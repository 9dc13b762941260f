// The price of a run by both rules for links (price/price.h).
#pragma once

#include "price/price.h"

#include <cmath>
#include <limits>

namespace hetcoll {

inline constexpr double kUncertain = 0.2; // of the difference
inline constexpr double kNeverUs = std::numeric_limits<double>::infinity();

// `run` takes a rule, and the most that it may take, and returns LinkClocks::Outcome. The rule that
// takes longer is run first, unless the other one may suffice or is found much sooner: what is
// given up is so sooner, and where transfers never wait for a place on a link, both are taken for
// one.
template <class Run> [[nodiscard]] Price price_by_both(PriceLimits limits, const Run &run)
{
    LinkClocks::Outcome alone, together;
    const auto give_up = [](const LinkClocks::Outcome &outcome) {
        return Price{.us = kNeverUs, .transfers = outcome.transfers};
    };
    if (limits.near_us < limits.most_us || (limits.shared_links && limits.most_us < kNeverUs)) {
        alone = run(LinkRule::kEachAlone, limits.most_us);
        if (!alone.all_ended) {
            return give_up(alone);
        }
        if (alone.us > limits.near_us) {
            return {.us = alone.us, .transfers = alone.transfers};
        }
    }
    together = run(LinkRule::kAllTogether, limits.most_us);
    if (!together.all_ended) {
        return give_up(together);
    }
    if (together.as_alone) {
        alone = together;
    }
    if (!alone.all_ended) {
        alone = run(LinkRule::kEachAlone, limits.most_us);
        if (!alone.all_ended) {
            return give_up(alone);
        }
    }
    return {.us = together.us + kUncertain * std::abs(together.us - alone.us),
            .transfers = alone.transfers};
}

} // namespace hetcoll
