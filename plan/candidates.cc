#include "plan/candidates.h"

#include "plan/facts.h"
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

Orders orders_of(Algorithm algorithm, const Query &query)
{
    return orders_of(algorithm, query.ranks, query.links.rack_ranks);
}

// The second phases of a hierarchy, in the order in which ties are decided. A ring of
// two is radix 2.
constexpr Algorithm kSecondPhases[] = {Algorithm::kRing,
                                       Algorithm::kRabenseifner,
                                       Algorithm::kRecursiveDoubling,
                                       Algorithm::kRadix3,
                                       Algorithm::kRadix4,
                                       Algorithm::kRadix8,
                                       Algorithm::kRecursiveMultiplying};

// With equal slices, and with the others that there are.
void add_slices(Way way, const Links &links, std::vector<Way> &ways)
{
    ways.push_back(way);
    way.by_links = true;
    if (links.slices_by_flow) {
        ways.push_back(way);
    }
    way.near_only = true;
    if (links.near_slices) {
        ways.push_back(way);
    }
}

std::vector<Way> hierarchies(Way way, const Query &query)
{
    std::vector<Way> ways;
    for (const bool over_trees : {false, true}) {
        if (over_trees && !(query.links.node_tree_gbps > 0)) {
            break;
        }
        way.over_trees = over_trees;
        if (over_trees && query.chunk_bytes == 0) {
            way.chunk_bytes = first_chunk(way.algorithm, query, true);
        }
        for (const Algorithm between : kSecondPhases) {
            way.between_nodes = between;
            const Orders orders = between == Algorithm::kRing && query.nodes == 2
                                      ? Orders{false, false}
                                      : orders_of(between, query.nodes, query.links.racks.nodes);
            for (const bool by_racks : {false, true}) {
                if (by_racks ? orders.by_racks : orders.plain) {
                    way.by_racks = by_racks;
                    add_slices(way, query.links, ways);
                }
            }
        }
    }
    return ways;
}

// Several partners share an adapter: what comes from all of them in one chunk each is there, and
// added up, at once. Of chunks, which go partner by partner, some wait for each other.
Way in_whole_messages(Way way, const Query &query)
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

std::vector<Way> ways_of(Algorithm algorithm, const Query &query)
{
    const std::size_t chunk =
        query.chunk_bytes != 0 ? query.chunk_bytes : first_chunk(algorithm, query);
    const Way first{.algorithm = algorithm, .chunk_bytes = whole_elements(chunk)};
    if (algorithm == Algorithm::kHierarchical) {
        std::vector<Way> ways = hierarchies(first, query);
        return ways.empty() ? std::vector{first} : ways;
    }
    if (radix_of(algorithm) == 0) {
        std::vector<Way> ways{first};
        Way other = first;
        other.by_links = algorithm == Algorithm::kRing && query.links.link_rings > 0;
        other.node_by_node = algorithm == Algorithm::kOrdered && query.links.gpu_gbps > 0 &&
                             node_shape(query).max > 1;
        if (other != first) {
            ways.push_back(other);
        }
        return ways;
    }
    std::vector<Way> ways;
    const Orders orders = orders_of(algorithm, query);
    for (const bool by_racks : {false, true}) {
        if (by_racks ? orders.by_racks : orders.plain || !orders.by_racks) {
            Way way = first;
            way.by_racks = by_racks;
            ways.push_back(in_whole_messages(way, query));
        }
    }
    return ways;
}

} // namespace hetcoll
