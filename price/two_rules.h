// The price of a run by both rules for links (price/price.h).
#pragma once

#include "price/price.h"

#include <cmath>
#include <limits>

namespace hetcoll {

inline constexpr double kUncertain = 0.2; // of the difference
inline constexpr double kNeverUs = std::numeric_limits<double>::infinity();

// The times of a run by both rules: `together_us` if transfers wait for each other, `alone_us` if
// they wait for nobody.
[[nodiscard]] inline double by_both(double together_us, double alone_us)
{
    return together_us + kUncertain * std::abs(together_us - alone_us);
}

// `run` takes a rule, and the most that it may take, and returns LinkClocks::Outcome. The rule that
// takes longer is run first: what is given up is so sooner, and where transfers never wait for a
// place on a link, both are taken for one.
template <class Run> [[nodiscard]] Price price_by(const PriceLimits &limits, const Run &run)
{
    const auto price_of = [](const LinkClocks::Outcome &outcome) {
        return Price{.us = outcome.all_ended ? outcome.us : kNeverUs,
                     .transfers = outcome.transfers};
    };
    if (limits.rules == PricedRules::kEachAlone) {
        return price_of(run(LinkRule::kEachAlone, limits.most_us));
    }
    const LinkClocks::Outcome together = run(LinkRule::kAllTogether, limits.most_us);
    if (limits.rules == PricedRules::kAllTogether || together.as_alone || !together.all_ended) {
        return price_of(together);
    }
    Price price = price_of(run(LinkRule::kEachAlone, limits.most_us));
    price.us = price.us < kNeverUs ? by_both(together.us, price.us) : kNeverUs;
    return price;
}

} // namespace hetcoll
