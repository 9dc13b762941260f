#include "price/candidates.h"

#include "schedule/radix.h"
#include "schedule/recursive_multiplying.h"
#include "tuning/parts.h"

#include <algorithm>
#include <iterator>

namespace hetcoll {
namespace {

constexpr int kRadices[] = {2, 3, 4, 8};

// A ring of two is radix 2.
bool is_needless_way(const PricedWay &way, const Query &query)
{
    return way.algorithm == Algorithm::kHierarchical &&
           (is_needless_among(way.between_nodes, query.nodes) ||
            (way.between_nodes == Algorithm::kRing && query.nodes == 2));
}

bool can_run(const PricedWay &way, const Query &query)
{
    return !is_needless_way(way, query) && (!way.over_trees || query.links.node_tree_gbps > 0) &&
           (!way.by_links || query.links.link_rings > 0) &&
           (!way.node_by_node || (query.links.gpu_gbps > 0 && node_shape(query).max > 1));
}

// With the other slices that there are.
void add_dealings(Choice choice, const Links &links, std::vector<Choice> &ways)
{
    if (choice.algorithm != Algorithm::kHierarchical) {
        return;
    }
    choice.by_links = true;
    if (links.slices_by_flow) {
        ways.push_back(choice);
    }
    choice.near_only = true;
    if (links.near_slices) {
        ways.push_back(choice);
    }
}

// Several partners share an adapter: what comes from all of them in one chunk each is there, and
// added up, at once. Of chunks, which go partner by partner, some wait for each other.
void add_whole_messages(const Choice &first, const Query &query, std::vector<Choice> &ways)
{
    const int radix = radix_of(first.algorithm);
    if (radix <= 2 || query.nodes < 2 || query.chunk_bytes != 0) {
        return;
    }
    Choice whole = first;
    whole.chunk_bytes = whole_message(radix, query);
    if (whole.chunk_bytes > first.chunk_bytes && whole.chunk_bytes <= kLargestChunkBytes) {
        ways.push_back(whole);
    }
}

} // namespace

int partners_of(Algorithm algorithm, int size)
{
    if (algorithm == Algorithm::kRecursiveMultiplying && size > 1) {
        const std::vector<int> factors = multiplied_factors(size);
        return *std::max_element(factors.begin(), factors.end()) - 1;
    }
    return std::max(radix_of(algorithm) - 1, 1);
}

bool is_needless_among(Algorithm algorithm, int size)
{
    if (algorithm == Algorithm::kRecursiveMultiplying) {
        return size <= 2 || !multiplies_evenly(size);
    }
    const int radix = radix_of(algorithm);
    const auto is_split = [size](int k) { return radix_factors(size, k).size() > 1; };
    return std::any_of(std::begin(kRadices), std::end(kRadices), [&](int fewer) {
        return fewer < radix && radix_rounds(size, fewer) == radix_rounds(size, radix) &&
               (is_split(fewer) || !is_split(radix));
    });
}

bool is_needless(Algorithm algorithm, const Query &query)
{
    return is_needless_among(algorithm, query.ranks) ||
           (algorithm == Algorithm::kRecursiveMultiplying && node_shape(query).max > 1);
}

std::vector<Choice> ways_of(Algorithm algorithm, const Query &query)
{
    Query asked = query;
    asked.forced = algorithm;
    asked.available |= bit(algorithm);
    const Choice first = choose(asked);
    std::vector<Choice> ways;
    for (const PricedWay &way : kWays) {
        if (way.algorithm == algorithm && can_run(way, query)) {
            Choice choice = first;
            choice.between_nodes = way.between_nodes;
            choice.over_trees = way.over_trees;
            choice.node_by_node = way.node_by_node;
            choice.by_links = way.by_links;
            if (way.over_trees && query.chunk_bytes == 0) {
                choice.chunk_bytes = first_chunk(algorithm, query, true);
            }
            ways.push_back(choice);
            add_dealings(choice, query.links, ways);
        }
    }
    add_whole_messages(first, query, ways);
    return ways.empty() ? std::vector{first} : ways;
}

} // namespace hetcoll
