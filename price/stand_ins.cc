#include "price/stand_ins.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hetcoll {
namespace {

// The same on every node, whatever their number: all that does not fold.
bool is_symmetric(const Choice &choice)
{
    const bool in_levels = choice.algorithm == Algorithm::kHierarchical;
    return (in_levels ? choice.between_nodes : choice.algorithm) != Algorithm::kRecursiveDoubling;
}

} // namespace

StandIns::StandIn::StandIn(Cluster alike)
    : cluster(std::move(alike)), ranks(place_ranks(cluster)), pricer(cluster, ranks)
{
}

StandIns::StandIns(const Cluster &cluster, const Ranks &ranks)
    : links_(ranks.query.links),
      folds_(!std::has_single_bit(static_cast<unsigned>(cluster.node_count()))),
      in_order_(std::is_sorted(ranks.node_of.begin(), ranks.node_of.end()))
{
    std::vector<const NodeKind *> seen;
    for (const NodeKind &kind : cluster.kinds) {
        const bool known = std::any_of(seen.begin(), seen.end(), [&](const NodeKind *other) {
            return other->topology == kind.topology && other->memory_gbps == kind.memory_gbps;
        });
        if (known) {
            continue;
        }
        seen.push_back(&kind);
        Cluster alike{.name = cluster.name, .kinds = {kind}, .network = cluster.network};
        alike.kinds.front().count = cluster.node_count();
        all_.emplace_back(alike);
        if (folds_) {
            alike.kinds.front().count =
                static_cast<int>(std::bit_floor(static_cast<unsigned>(cluster.node_count())));
            folded_.emplace_back(std::move(alike));
        }
    }
    // They have a rank on each GPU, and map what links join.
    const bool maps = ranks.query.links.gpu_gbps > 0;
    is_alike_ = ranks.query.ranks_per_gpu == 1 &&
                std::all_of(all_.begin(), all_.end(), [maps](const StandIn &one) {
                    return (one.ranks.query.links.gpu_gbps > 0) == maps;
                });
}

bool StandIns::can_price(Algorithm algorithm) const noexcept
{
    if (!is_alike_) {
        return false;
    }
    if (algorithm == Algorithm::kHierarchical) {
        return true;
    }
    const Choice choice{.algorithm = algorithm};
    const StandIn &any = folds_ && !is_symmetric(choice) ? folded_.front() : all_.front();
    return in_order_ && RankPlans::is_mirrored(any.cluster, any.ranks, choice);
}

Price StandIns::price(const Choice &choice, const PricedCall &call, PriceLimits limits)
{
    const double fold = fold_us(choice, call.bytes);
    limits.most_us -= fold;
    limits.near_us -= fold;
    Price most;
    for (StandIn &one : of(choice)) {
        const Price price = one.pricer.price(choice, call, limits);
        most = price.us > most.us ? price : most;
    }
    most.us += fold;
    return most;
}

double StandIns::least_us(const Choice &choice, const PricedCall &call)
{
    double most = 0;
    for (StandIn &one : of(choice)) {
        most = std::max(most, one.pricer.least_us(choice, call));
    }
    return most + fold_us(choice, call.bytes);
}

std::deque<StandIns::StandIn> &StandIns::of(const Choice &choice)
{
    return folds_ && !is_symmetric(choice) ? folded_ : all_;
}

// A vector there and one back.
double StandIns::fold_us(const Choice &choice, std::size_t bytes) const
{
    const bool folded = folds_ && !is_symmetric(choice);
    const double way_us =
        links_.node_latency_us + transfer_us(static_cast<double>(bytes), links_.node_gbps);
    return folded ? 2 * way_us : 0;
}

} // namespace hetcoll
