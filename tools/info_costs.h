// The algorithms of hetcoll_info explain, one by one: what each would cost, or why it cannot run.
#pragma once

#include "tools/info_prices.h"

#include <array>
#include <vector>

namespace hetcoll {

struct CostRow {
    Algorithm algorithm;
    bool can_run;
    double us = 0;         // 0: it has no price
    bool given_up = false; // a job would not know the price
    const char *why = "";  // it cannot run, or has no price
};

// Those that can run first, the cheapest first of all. `small`: the call is up to the small limit.
[[nodiscard]] std::vector<CostRow>
cost_rows(const Query &query, bool small,
          const std::array<CallPriced::Cost, kAlgorithmCount> &costs);

} // namespace hetcoll
