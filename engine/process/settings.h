// The parameters, parsed and checked. An error names the one that is wrong and what it may be.
#pragma once

#include "aggregator/endpoint.h"
#include "base/status.h"
#include "engine/types/settings.h"
#include "machine/rank_shares.h"
#include "pointer_cache/pointer_cache.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

// Settings that are words.
struct ParsedSettings {
    PointerCacheMode pointer_cache = PointerCacheMode::kValidated;
    std::uint32_t algorithm = 0; // as in the facts
    ShareSetting shares;
    std::string adapters{}; // coll_hetcoll_adapters; empty: none
    std::vector<Endpoint> aggregators;
};

// Checks all of them.
[[nodiscard]] Result<ParsedSettings> parse_settings(const hetcoll_settings &settings);

// The rest is for parameters that a program can also set while it runs.

// coll_hetcoll_algorithm as hetcoll_facts has it: 0 for auto, else 1 + enum Algorithm.
[[nodiscard]] Result<std::uint32_t> parse_algorithm(std::string_view name);

// coll_hetcoll_aggregators; "": none.
[[nodiscard]] Result<std::vector<Endpoint>> parse_aggregators(const char *text);

// All that are numbers, by the list.
[[nodiscard]] Status check_numbers(const hetcoll_settings &settings);

} // namespace hetcoll
