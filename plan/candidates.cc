#include "plan/candidates.h"

#include "plan/algorithm.h"
#include "plan/facts.h"
#include "plan/parts.h"
#include "schedule/radix.h"
#include "schedule/recursive_multiplying.h"

#include <algorithm>

namespace hetcoll {

Orders orders_of(Algorithm algorithm, int size, int rack)
{
    const int radix = radix_of(algorithm);
    const bool in_racks =
        radix != 0 && has_racks(size, rack) && !is_needless_among(algorithm, size, rack);
    const bool differs = in_racks && differs_by_racks(size, radix, rack);
    return {(in_racks && !differs) || !is_needless_among(algorithm, size), differs};
}

int partners_of(Algorithm algorithm, int size)
{
    if (has(algorithm, Trait::kMultiplies) && size > 1) {
        const std::vector<int> factors = multiplied_factors(size);
        return *std::max_element(factors.begin(), factors.end()) - 1;
    }
    return std::max(radix_of(algorithm) - 1, 1);
}

bool is_needless_among(Algorithm algorithm, int size, int rack)
{
    if (has(algorithm, Trait::kMultiplies)) {
        return size <= 2 || !multiplies_evenly(size);
    }
    const int radix = radix_of(algorithm);
    const int first = rack > 0 ? rack : size;
    const auto is_split = [first](int k) { return radix_factors(first, k).size() > 1; };
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const int fewer = radix_of(static_cast<Algorithm>(i));
        if (fewer != 0 && fewer < radix &&
            radix_rounds(size, fewer, rack) == radix_rounds(size, radix, rack) &&
            (is_split(fewer) || !is_split(radix))) {
            return true;
        }
    }
    return false;
}

bool is_needless(Algorithm algorithm, const Query &query)
{
    const Orders orders = orders_of(algorithm, query.ranks, query.links.rack_ranks);
    return (!orders.plain && !orders.by_racks) ||
           (has(algorithm, Trait::kMultiplies) && node_shape(query).max > 1);
}

std::vector<Way> ways_of(Algorithm algorithm, const Query &query)
{
    const std::size_t chunk =
        query.chunk_bytes != 0 ? query.chunk_bytes : first_chunk(algorithm, query);
    const Way first{.algorithm = algorithm, .chunk_bytes = whole_elements(chunk)};
    std::vector<Way> ways;
    if (const auto add_ways = plan_of(algorithm).add_ways) {
        add_ways(first, query, ways);
    }
    if (ways.empty()) {
        ways.push_back(first);
    }
    return ways;
}

} // namespace hetcoll
