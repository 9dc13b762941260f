#include "price/candidates.h"

#include "plan/parts.h"
#include "schedule/radix.h"
#include "schedule/recursive_multiplying.h"

#include <algorithm>
#include <iterator>

namespace hetcoll {
namespace {

constexpr int kRadices[] = {2, 3, 4, 8};

// In which orders an algorithm is worth a price. If racks first gives the same schedule, the plain
// order is the one that is priced.
struct Orders {
    bool plain, by_racks;
};
Orders orders_of(Algorithm algorithm, int size, int rack)
{
    const int radix = radix_of(algorithm);
    const bool in_racks =
        radix != 0 && has_racks(size, rack) && !is_needless_among(algorithm, size, rack);
    const bool differs = in_racks && differs_by_racks(size, radix, rack);
    return {(in_racks && !differs) || !is_needless_among(algorithm, size), differs};
}

// A ring of two is radix 2.
Orders orders_of(const PricedWay &way, const Query &query)
{
    if (way.algorithm != Algorithm::kHierarchical) {
        return {true, false};
    }
    if (way.between_nodes == Algorithm::kRing && query.nodes == 2) {
        return {false, false};
    }
    return orders_of(way.between_nodes, query.nodes, query.links.racks.nodes);
}

Orders orders_of(Algorithm algorithm, const Query &query)
{
    return orders_of(algorithm, query.ranks, query.links.rack_ranks);
}

bool can_run(const PricedWay &way, const Query &query)
{
    return (!way.over_trees || query.links.node_tree_gbps > 0) &&
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
Choice in_whole_messages(Choice way, const Query &query)
{
    const int radix = radix_of(way.algorithm);
    if (radix > 2 && query.nodes > 1 && query.chunk_bytes == 0) {
        const std::size_t whole =
            whole_message(radix, query, way.by_racks ? query.links.rack_ranks : 0);
        way.chunk_bytes =
            whole <= kLargestChunkBytes ? std::max(whole, way.chunk_bytes) : way.chunk_bytes;
    }
    return way;
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

bool is_needless_among(Algorithm algorithm, int size, int rack)
{
    if (algorithm == Algorithm::kRecursiveMultiplying) {
        return size <= 2 || !multiplies_evenly(size);
    }
    const int radix = radix_of(algorithm);
    const int first = rack > 0 ? rack : size;
    const auto is_split = [first](int k) { return radix_factors(first, k).size() > 1; };
    return std::any_of(std::begin(kRadices), std::end(kRadices), [&](int fewer) {
        return fewer < radix &&
               radix_rounds(size, fewer, rack) == radix_rounds(size, radix, rack) &&
               (is_split(fewer) || !is_split(radix));
    });
}

bool is_needless(Algorithm algorithm, const Query &query)
{
    const Orders orders = orders_of(algorithm, query);
    return (!orders.plain && !orders.by_racks) ||
           (algorithm == Algorithm::kRecursiveMultiplying && node_shape(query).max > 1);
}

std::vector<Choice> ways_of(Algorithm algorithm, const Query &query)
{
    const std::size_t chunk =
        query.chunk_bytes != 0 ? query.chunk_bytes : first_chunk(algorithm, query);
    const Choice first{.algorithm = algorithm, .chunk_bytes = whole_elements(chunk)};
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
            const Orders orders = orders_of(way, query);
            for (const bool by_racks : {false, true}) {
                if (by_racks ? orders.by_racks : orders.plain) {
                    choice.by_racks = by_racks;
                    ways.push_back(choice);
                    add_dealings(choice, query.links, ways);
                }
            }
        }
    }
    if (radix_of(algorithm) == 0) {
        return ways.empty() ? std::vector{first} : ways;
    }
    const Orders orders = orders_of(algorithm, query);
    for (const bool by_racks : {false, true}) {
        if (by_racks ? orders.by_racks : orders.plain || !orders.by_racks) {
            Choice way = first;
            way.by_racks = by_racks;
            ways.push_back(in_whole_messages(way, query));
        }
    }
    return ways;
}

} // namespace hetcoll
