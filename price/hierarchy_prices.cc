// The best hierarchy of a size: which way between nodes, in how many segments.
#include "plan/build_schedule.h"
#include "plan/candidates.h"
#include "plan/facts.h"
#include "plan/parts.h"
#include "price/prices.h"
#include "price/two_rules.h"

#include <algorithm>
#include <bit>

namespace hetcoll {
namespace {

// One node that runs for all does not know how late messages of several partners are: by SimGrid, 4
// nodes of 4 GPUs, it takes up to 1.19 times as long.
constexpr double kMayBeLate = 1.25;
// By links whose transfers wait for each other more segments may seem a little worse: other links
// wait less, and so do other ways.
constexpr double kAsGood = 1.01;
constexpr double kWorthMorePartners = 0.95;
// Vectors of few messages are soon run, and may gain by four times the segments what they lose by
// twice as many.
constexpr std::size_t kMostBytesInFewMessages = 2u << 20;

} // namespace

// Segments hide the rounds of ways that cut the vector, but what multiplies has few to hide: each
// kind is best with as many segments as are best for it.
Prices::Priced Prices::best_hierarchy(std::span<Priced> ways, double other_us,
                                      const PricedCall &call)
{
    const double least_us = least_alone(ways)->alone_us;
    std::vector<Priced> by_factors, others;
    for (const Priced &way : ways) {
        (has(algorithm_across(way.way), Trait::kMultiplies) ? by_factors : others).push_back(way);
    }
    Priced multiplied = best_of_kind(by_factors, least_us, other_us, call);
    Priced cut = best_of_kind(others, least_us, other_us, call);
    run_in_full(multiplied, std::min(cut.price.us, other_us), call);
    run_in_full(cut, std::min(multiplied.price.us, other_us), call);
    return multiplied.price.us < cut.price.us ? multiplied : cut;
}

// If it may then lose to what takes `next_us`.
void Prices::run_in_full(Priced &best, double next_us, const PricedCall &call)
{
    if (best.price.us < next_us && next_us < kMayBeLate * best.price.us &&
        ranks_.size() <= kMostInFull && pricer_.mirrors(best.way) &&
        partners_of(best.way.between_nodes, ranks_.query.nodes) > 1) {
        const double together_us =
            in_full_.price(best.way, call, {.rules = PricedRules::kAllTogether}).us;
        best.price.us = by_both(together_us, best.alone_us);
    }
}

std::span<Prices::Priced>::iterator Prices::least_alone(std::span<Priced> ways)
{
    return std::min_element(ways.begin(), ways.end(), [](const Priced &a, const Priced &b) {
        return a.alone_us < b.alone_us;
    });
}

// The cheapest way with as many segments as are best for it, then the others that were not far from
// it with as many. Partners share the adapters with what other segments send, and then a message is
// late more often than one node that runs for all can know: more of them must be worth something.
// A way that is not near the best of the other kind, or of all others, is not tried further.
Prices::Priced Prices::best_of_kind(std::span<Priced> ways, double least_us, double other_us,
                                    const PricedCall &call)
{
    const auto first = least_alone(ways);
    if (first == ways.end() || first->alone_us > kMayBecomeBest * least_us) {
        return {};
    }
    Priced best = *first;
    best.price.us = best.alone_us;
    if (best.alone_us > kMayBecomeBest * other_us) {
        return best;
    }
    take_if_below(kNeverUs, first->way, best, call);
    if (best.price.us > kMayBecomeBest * other_us) {
        return best;
    }
    const double most_us = kMayBecomeBest * std::min(other_us, least_us);
    if (!best.way.over_trees && best.way.segments > 1) {
        Way alone = best.way;
        alone.leaving = 1;
        take_if_below(best.price.us, alone, best, call);
    }
    find_segments(best, call);
    const auto partners = [this](const Way &way) {
        return partners_of(way.between_nodes, ranks_.query.nodes);
    };
    const Way known = best.way;
    for (Priced &way : ways) {
        way.place = partners(way.way);
    }
    sort_by_place(ways);
    bool changed = false;
    for (const Priced &other : ways) {
        Way way = other.way;
        cut(way, best.way.segments);
        way.leaving = way.over_trees == best.way.over_trees ? best.way.leaving : way.leaving;
        const bool is_known = way.between_nodes == known.between_nodes &&
                              way.over_trees == known.over_trees &&
                              way.by_links == known.by_links && way.near_only == known.near_only &&
                              way.by_racks == known.by_racks;
        const int more = partners(way) - partners(best.way);
        const double worth = more > 0 ? kWorthMorePartners : more < 0 ? 1 / kWorthMorePartners : 1;
        const double below_us = worth * best.price.us;
        if (is_known || other.alone_us >= most_us ||
            (way == other.way && other.alone_us >= below_us)) {
            continue;
        }
        changed |= take_if_below(below_us, way, best, call);
    }
    if (changed) {
        find_segments(best, call);
    }
    let_two_leave(best, call);
    best.alone_us = price(best.way, call, {.rules = PricedRules::kEachAlone}).us;
    best.price.us = by_both(best.price.us, best.alone_us);
    return best;
}

// By links that wait for each other.
bool Prices::take_if_below(double us, const Way &way, Priced &best, const PricedCall &call)
{
    const Price found = price(way, call, {.most_us = us, .rules = PricedRules::kAllTogether});
    if (!(found.us < us)) {
        return false;
    }
    best = {.way = way, .price = found};
    return true;
}

int Prices::most_gpus() const
{
    std::size_t gpus = 1;
    for (const NodeGroups &node : ranks_.groups.nodes) {
        gpus = std::max(gpus, node.size());
    }
    return static_cast<int>(gpus);
}

// Over trees a segment has two lanes at least.
int Prices::most_segments(const Way &way) const
{
    const int most = hetcoll::most_segments(most_gpus());
    return way.over_trees ? std::min(most, kMostPricedChannels / 2) : most;
}

// A rank that is alone on its node has nothing else to do while messages are under way.
int Prices::first_segments(std::size_t bytes) const
{
    constexpr int kOfOneRank = 4;
    constexpr std::size_t kLeastBytes = 16u << 10; // of one
    return has_one_rank_a_node() && bytes >= kOfOneRank * kLeastBytes ? kOfOneRank
                                                                      : hierarchy_segments(bytes);
}

// Over trees into as many lanes as channels and slices allow: less waits, and equal slices take no
// more messages.
void Prices::cut(Way &way, int segments) const
{
    way.segments = segments;
    if (way.over_trees) {
        const auto gpus = static_cast<unsigned>(most_gpus());
        way.lanes = std::min(kMostPricedChannels / segments, static_cast<int>(std::bit_ceil(gpus)));
    }
}

// Doubles or halves them as long as that helps. Each doubling gains about half as much as the one
// before, and costs twice the messages, and the time to run them here.
void Prices::find_segments(Priced &best, const PricedCall &call)
{
    const int most = most_segments(best.way);
    const auto takes = [&](int segments, double worth) {
        Way way = best.way;
        if (segments < 1 || segments > most) {
            return false;
        }
        cut(way, segments);
        return take_if_below(worth * best.price.us, way, best, call);
    };
    const int before = best.way.segments;
    const bool looks_ahead = call.bytes <= kMostBytesInFewMessages && ranks_.size() <= kMostInFull;
    for (double was = kNeverUs; best.price.us < kWorthwhile * was;) {
        was = best.price.us;
        if (!takes(2 * best.way.segments, kAsGood) && looks_ahead) {
            takes(4 * best.way.segments, 1);
        }
    }
    while (best.way.segments <= before && takes(best.way.segments / 2, 1)) {
    }
}

// Two at a time: the first message is as early as that of one, if each is half as large, and what
// they wait for overlaps. Small ones are not worth their kernels.
void Prices::let_two_leave(Priced &best, const PricedCall &call)
{
    constexpr std::size_t kLeastBytes = 32u << 10;
    if (best.way.leaving != 1) {
        return;
    }
    for (const int segments : {best.way.segments, 2 * best.way.segments}) {
        Way two = best.way;
        two.segments = segments;
        two.leaving = 2;
        if (segments <= most_segments(two) &&
            call.bytes >= static_cast<std::size_t>(segments) * kLeastBytes) {
            take_if_below(kWorthwhile * best.price.us, two, best, call);
        }
    }
}

} // namespace hetcoll
