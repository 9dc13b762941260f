// The price of a run by both rules for links (price/price.h).
#pragma once

#include "price/price.h"

#include <cmath>
#include <limits>

namespace hetcoll {

inline constexpr double kUncertain = 0.2; // of the difference
inline constexpr double kNeverUs = std::numeric_limits<double>::infinity();

// `run` takes a rule, and the most that it may take, and returns LinkClocks::Outcome.
template <class Run> [[nodiscard]] Price price_by_both(PriceLimits limits, const Run &run)
{
    const LinkClocks::Outcome alone = run(LinkRule::kEachAlone, limits.most_us);
    Price price{.us = alone.all_ended ? alone.us : kNeverUs, .transfers = alone.transfers};
    if (!alone.all_ended || alone.us > limits.near_us) {
        return price;
    }
    const LinkClocks::Outcome together = run(LinkRule::kAllTogether, limits.most_us);
    price.us =
        together.all_ended ? together.us + kUncertain * std::abs(together.us - alone.us) : kNeverUs;
    return price;
}

} // namespace hetcoll
