#include "price/prices.h"

#include "plan/build_schedule.h"
#include "plan/candidates.h"
#include "plan/facts.h"
#include "plan/parts.h"
#include "plan/tree.h"
#include "price/rank_plans.h"
#include "price/two_rules.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hetcoll {
namespace {

// Ranks whose messages to all others are run in full: their number is a square.
constexpr int kMostWithAll = 128;
// By SimGrid, 24 and 48 nodes: 1.05 to 1.17.
constexpr double kLosesStep = 1.1;
// Chunks of a way over trees that is only compared: of smaller ones there are many, and all ways
// have them.
constexpr std::size_t kCoarse = 4;
// With one rank a node a hierarchy is what runs between nodes, in segments. Smaller vectors are not
// worth any, and of larger ones others are as fast.
constexpr std::size_t kLeastBytesOfOneRank = 32u << 10, kMostBytesOfOneRank = 8u << 20;
// A way within this factor of the best may still win with a different chunk size.
constexpr double kMayPass = 1.05;
// A way within this factor may be the best at neighbouring sizes.
constexpr double kMayPassBetween = 1.1;

// Serves up to the largest size here, and costs little to price: the line to it needs its price
// even where another one is far better.
bool is_always_priced(const Way &way, const PricedCall &call)
{
    return is(way.algorithm, Form::kHost) && call.bytes <= kMostHostBytes;
}

PricedCell &cell_in(PriceTable::Column &column, Algorithm algorithm)
{
    return column[static_cast<std::size_t>(algorithm)];
}

PricedCell cell_of(const Way &way, double us)
{
    return {.us = static_cast<float>(us), .way = encode(way)};
}

} // namespace

Prices::Prices(const Cluster &cluster, const Ranks &ranks, const Weighted &weighted)
    : ranks_(ranks), weighted_(weighted), pricer_(cluster, ranks), in_full_(cluster, ranks, false)
{
    if (ranks.size() > kMostInFull && cluster.node_count() > 1) {
        stand_ins_.emplace(cluster, ranks);
    }
}

// Nodes that send chunk by chunk to one partner after the other lose step. One that runs for all
// does not.
bool Prices::loses_step(const Way &way, const PricedCall &call) const
{
    const int radix = radix_of(way.algorithm);
    return radix > 2 && pricer_.mirrors(way) &&
           way.chunk_bytes < whole_message(radix, {.bytes = call.bytes, .ranks = ranks_.size()},
                                           way.by_racks ? ranks_.query.links.rack_ranks : 0);
}

Price Prices::price(const Way &way, const PricedCall &call, PriceLimits limits)
{
    const double longer = loses_step(way, call) ? kLosesStep : 1;
    limits.most_us /= longer;
    Price found = may_stand_in(way.algorithm) ? stand_ins_->price(way, call, limits)
                                              : pricer_.price(way, call, limits);
    found.us *= longer;
    return found;
}

double Prices::least_us(const Way &way, const PricedCall &call)
{
    return may_stand_in(way.algorithm) ? stand_ins_->least_us(way, call)
                                       : pricer_.least_us(way, call);
}

bool Prices::may_stand_in(Algorithm algorithm) const noexcept
{
    return stand_ins_ && row_of(algorithm).is_schedule() && !needs(algorithm, Needs::kShares);
}

AlgorithmSet Prices::set() const noexcept
{
    AlgorithmSet set = ranks_.query.available | algorithms_of(Form::kHost);
    set = ranks_.query.aggregators > 0 ? set | algorithms_of(Form::kServers)
                                       : without(set, algorithms_of(Form::kServers));
    const bool weighted = !weighted_.shares.empty() && ranks_.size() <= kMostWithAll;
    return weighted ? set | algorithms_that_need(Needs::kShares)
                    : without(set, algorithms_that_need(Needs::kShares));
}

// Ways that may be fast go first, so that the others are given up soon.
std::vector<Prices::Candidate> Prices::candidates(AlgorithmSet set, const PricedCall &call)
{
    Query query = ranks_.query;
    query.bytes = call.bytes;
    std::vector<Candidate> all;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        const bool gains_nothing =
            needs(algorithm, Needs::kGroups) && has_one_rank_a_node() &&
            (call.bytes < kLeastBytesOfOneRank || call.bytes > kMostBytesOfOneRank);
        if (!contains(set, algorithm) || is_needless(algorithm, ranks_.query) ||
            (gains_nothing && set != bit(algorithm))) {
            continue;
        }
        for (Way &way : ways_of(algorithm, query)) {
            if (needs(algorithm, Needs::kGroups)) {
                way.leaving = way.over_trees ? 0 : 2; // what 0 stands for
                cut(way, first_segments(call.bytes));
            }
            way.late = needs(algorithm, Needs::kShares) ? weighted_.late : -1;
            if (needs(algorithm, Needs::kTrees)) {
                const Links &links = ranks_.query.links;
                const int parts = resolve_parts(way, call.bytes, links, ranks_.size()).host_parts;
                way.host_parts = parts * 4 / 5; // about what with_best_sides() will find
            }
            all.push_back({way, least_us(way, call)});
        }
    }
    std::stable_sort(all.begin(), all.end(), [](const Candidate &a, const Candidate &b) {
        const bool first_a = row_of(a.way.algorithm).is_one_kernel();
        const bool first_b = row_of(b.way.algorithm).is_one_kernel();
        return first_a != first_b ? first_a : a.least_us < b.least_us;
    });
    return all;
}

// By links that wait for nobody: that costs least to find, and is the least but for a few percent.
Prices::Alone Prices::price_alone(AlgorithmSet set, const PricedCall &call,
                                  PriceTable::Column &column)
{
    Alone alone;
    double other_us = kNeverUs, radix_us = kNeverUs;
    for (const Candidate &candidate : candidates(set, call)) {
        const Algorithm algorithm = candidate.way.algorithm;
        const bool in_levels = needs(algorithm, Needs::kGroups);
        PricedCell &cell = cell_in(column, algorithm);
        if (!(cell.us > 0)) {
            cell = cell_of(candidate.way, kNeverUs);
        }
        const double best_us = std::min({alone.kernel.price.us, alone.hierarchy_us, other_us});
        double most_us =
            (in_levels && alone.hierarchy_us < kNeverUs ? kMayBecomeBest : kFarFromTheBest) *
            best_us;
        const bool is_radix = radix_of(algorithm) != 0; // the same bytes in other rounds
        most_us = is_radix ? std::min(most_us, kMayPass * radix_us) : most_us;
        most_us = is_always_priced(candidate.way, call) ? kNeverUs : most_us;
        if (candidate.least_us > most_us) {
            continue;
        }
        const PriceLimits limits{.most_us = most_us, .rules = PricedRules::kEachAlone};
        Way coarse = candidate.way;
        if (coarse.over_trees) {
            coarse.chunk_bytes = std::min(kCoarse * coarse.chunk_bytes, kLargestChunkBytes);
        }
        const Price found = price(coarse, call, limits);
        const double us = found.us;
        if (row_of(algorithm).is_one_kernel()) {
            cell = cell_of(candidate.way, us);
            if (us < alone.kernel.price.us) {
                alone.kernel = {.way = candidate.way, .price = found};
            }
            continue;
        }
        if (us < kNeverUs) {
            (in_levels ? alone.hierarchies : alone.others)
                .push_back({.way = candidate.way, .alone_us = us});
        }
        radix_us = is_radix ? std::min(radix_us, us) : radix_us;
        if (!is(algorithm, Form::kHost)) { // which serves small calls only
            double &best_of_kind_us = in_levels ? alone.hierarchy_us : other_us;
            best_of_kind_us = std::min(best_of_kind_us, us);
        }
    }
    return alone;
}

void Prices::sort_by_place(std::span<Priced> ways)
{
    std::stable_sort(ways.begin(), ways.end(),
                     [](const Priced &a, const Priced &b) { return a.place < b.place; });
}

// A way that takes longer than the best price on links that wait for nobody needs no other price.
// Hierarchies have segments to be found, which takes long: what may be better comes first.
PriceTable::Column Prices::of_size(int size, AlgorithmSet set)
{
    const PricedCall call{.bytes = PriceTable::bytes_of(size),
                          .shares = weighted_.shares,
                          .early_is_done = weighted_.early_is_done};
    PriceTable::Column column{};
    Alone alone = price_alone(set, call, column);
    for (Priced &way : alone.others) { // rings by links after those that are as good
        way.place = way.alone_us / (way.way.by_links ? kWorthwhile : 1);
    }
    sort_by_place(alone.others);
    Priced best = alone.kernel, next;
    const auto take = [&](const Priced &way) {
        PricedCell &cell = cell_in(column, way.way.algorithm);
        if (!(way.price.us < static_cast<double>(cell.us))) {
            return; // another way of the algorithm is as good
        }
        cell = cell_of(way.way, way.price.us);
        if (is(way.way.algorithm, Form::kHost) && call.bytes > kMostHostBytes) {
            return; // it does not serve
        }
        if (way.price.us < best.price.us) {
            next = std::exchange(best, way);
        } else if (way.price.us < next.price.us) {
            next = way;
        }
    };
    bool hierarchy_is_priced = alone.hierarchies.empty();
    for (const Priced &other : alone.others) {
        if (!hierarchy_is_priced && other.alone_us > kMayPassBetween * alone.hierarchy_us) {
            take(best_hierarchy(alone.hierarchies, best.price.us, call));
            hierarchy_is_priced = true;
        }
        const auto known_us = static_cast<double>(cell_in(column, other.way.algorithm).us);
        if (other.alone_us < kWorthwhile * known_us) {
            take(by_both_if_near(best.price.us, known_us, other, call));
        }
    }
    if (!hierarchy_is_priced) {
        take(best_hierarchy(alone.hierarchies, best.price.us, call));
    }
    const double near_us = kMayPass * best.price.us;
    // The most that trees give adapters of what they carry.
    const double near_trees_us =
        near_us / (1 - most_sides(ranks_.query.links, ranks_.size()).adapter / double{kSideParts});
    // Another way of the same algorithm has lost to it, and another radix has the same bytes.
    if (next.way.algorithm == best.way.algorithm ||
        (radix_of(best.way.algorithm) != 0 && radix_of(next.way.algorithm) != 0)) {
        next = {};
    }
    for (const Priced &way : {best, next}) {
        const bool trees = needs(way.way.algorithm, Needs::kTrees);
        if (row_of(way.way.algorithm).is_schedule() && way.price.us < kNeverUs &&
            way.price.us <= (trees ? near_trees_us : near_us)) {
            cell_in(column, way.way.algorithm) =
                trees ? with_best_sides(way.way, call) : with_best_chunk(way.way, call, way.price);
        }
    }
    return column;
}

// The rings wait for themselves and each other as no closed form knows, and one part too many costs
// several times what one too few does. So more parts have to save most of what they take from the
// trees, and the trees' transfers to wait no more. (A little sooner than alone is no less waiting.)
bool Prices::takes_parts(Sharing &found, int Way::*parts, int count, const PricedCall &call)
{
    constexpr double kSaves = 0.8 / kSideParts, kWaitsNoMore = 1.003;
    Way way = found.way;
    way.*parts = count;
    if (way.host_parts + way.adapter_parts >= kSideParts) {
        return false; // trees must have some
    }
    const int more = count - found.way.*parts;
    const double most_us = found.us < kNeverUs ? (1 - kSaves * more) * found.us : kNeverUs;
    const double us = price(way, call, {.most_us = most_us, .rules = PricedRules::kAllTogether}).us;
    if (!(us < most_us)) {
        return false;
    }
    const double alone_us = price(way, call, {.rules = PricedRules::kEachAlone}).us;
    if (us > kWaitsNoMore * std::max(found.waits, 1.0) * alone_us) {
        return false;
    }
    found = {.way = way, .us = us, .waits = us / alone_us};
    return true;
}

// Adapters get the most that the closed form and the rings' waiting allow, as it is near to what
// they can carry. Host memory then may have room for more. Chunks are found for both ways, because
// those of two rings may have to be larger.
PricedCell Prices::with_best_sides(const Way &trees, const PricedCall &call)
{
    constexpr int kTried = 10; // numbers of parts, where there may be as many
    const Links &links = ranks_.query.links;
    const SideShares most = most_sides(links, ranks_.size());
    const int stride = std::max(1, most.host / kTried);
    Sharing found{.way = trees};
    found.way.adapter_parts = 0;
    for (int parts = 0; parts <= most.host; parts += stride) {
        (void)takes_parts(found, &Way::host_parts, parts, call);
    }
    const PricedCell by_host = with_best_chunk(found.way, call, price(found.way, call, {}));
    int parts = most.adapter;
    while (parts > 0 && !takes_parts(found, &Way::adapter_parts, parts, call)) {
        --parts;
    }
    if (parts == 0) {
        return by_host;
    }
    if (const int more = found.way.host_parts + stride; more <= most.host) {
        (void)takes_parts(found, &Way::host_parts, more, call);
    }
    const PricedCell by_both = with_best_chunk(found.way, call, price(found.way, call, {}));
    return by_both.us < by_host.us ? by_both : by_host;
}

// A way that is not near the best is given up: as by links that wait for nobody it would seem too
// cheap between this size and one at which it is near.
Prices::Priced Prices::by_both_if_near(double best_us, double known_us, Priced way,
                                       const PricedCall &call)
{
    best_us = is_always_priced(way.way, call) ? kNeverUs : best_us;
    const double near_us = std::min(kMayPassBetween * best_us, known_us);
    const double most_us = std::min(kFarFromTheBest * best_us, known_us);
    if (way.alone_us < near_us) {
        way.price = price(way.way, call, {.most_us = most_us, .rules = PricedRules::kAllTogether});
        if (way.price.us < kNeverUs) {
            way.price.us = by_both(way.price.us, way.alone_us);
        }
    }
    return way;
}

// Smaller chunks fill a pipeline sooner, but each costs a message. To run many of them takes long,
// and may then not be tried.
PricedCell Prices::with_best_chunk(Way way, const PricedCall &call, Price best)
{
    constexpr std::size_t kLeastBytes = 64u << 10, kUnit = kEncodedChunkUnit;
    constexpr std::uint64_t kTransfersOfRank = 250, kTransfersOfHierarchy = 2000;
    constexpr int kMostRanks = 64;
    const int rings = uses_adapters(way) ? 2 : 1; // in addition to trees
    const std::uint64_t most =
        needs(way.algorithm, Needs::kGroups)
            ? kTransfersOfHierarchy
            : kTransfersOfRank *
                  static_cast<std::uint64_t>(rings * std::min(ranks_.size(), kMostRanks));
    const std::size_t first_bytes = way.chunk_bytes;
    const auto takes = [&](std::size_t chunk_bytes) {
        Way other = way;
        other.chunk_bytes = chunk_bytes;
        const Price found = price(other, call, {.most_us = kWorthwhile * best.us});
        if (!(found.us < best.us)) {
            return false;
        }
        best = found;
        way = other;
        return true;
    };
    while (way.chunk_bytes >= 2 * kLeastBytes && call.bytes > way.chunk_bytes &&
           2 * best.transfers <= most && takes(way.chunk_bytes / 2 / kUnit * kUnit)) {
    }
    if (way.chunk_bytes == first_bytes && best.transfers <= most) {
        while (2 * way.chunk_bytes <= kLargestChunkBytes && call.bytes > way.chunk_bytes &&
               takes(2 * way.chunk_bytes)) {
        }
    }
    return cell_of(way, best.us);
}

PriceTable price_near(Prices &prices, std::size_t bytes, AlgorithmSet set)
{
    PriceTable table;
    const int below = PriceTable::size_below(bytes);
    for (const int size : {below, below + 1}) {
        table.column(size) = prices.of_size(size, set & prices.set());
    }
    return table;
}

} // namespace hetcoll
