#include "topology/ring_order.h"

#include "topology/adapters.h"
#include "topology/route.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <numeric>

namespace hetcoll {
namespace {

constexpr double kTicks = 1e9; // for a GB, at 1 GB/s
constexpr std::int64_t kNoPath = std::numeric_limits<std::int64_t>::max() / 1024;

// A transfer keeps every link of its way for as long as its slowest one takes.
struct Transfer {
    std::vector<int> links; // directed: twice the link's number, and 1 against its direction
    std::int64_t ticks = 0;

    [[nodiscard]] std::int64_t total() const
    {
        return ticks * std::max(static_cast<std::int64_t>(links.size()), std::int64_t{1});
    }
};

Transfer transfer_by(const Route &route, bool backwards)
{
    if (route.kind == RouteKind::kNone) {
        return {.links = {}, .ticks = kNoPath};
    }
    Transfer transfer{.links = {}, .ticks = std::llround(kTicks / route.gbps)};
    for (const Hop &hop : route.links) {
        transfer.links.push_back(2 * hop.link + (hop.forward == backwards ? 1 : 0));
    }
    return transfer;
}

struct Cost {
    std::int64_t fullest = 0, total = 0;
    friend auto operator<=>(const Cost &, const Cost &) = default;
};

using Order = std::vector<int>; // of places in the list of GPUs

class Ways {
public:
    Ways(const Topology &node, std::span<const int> gpus, bool crosses_nodes)
        : count_(static_cast<int>(gpus.size())), loads_(2 * node.links.size())
    {
        const std::vector<int> vertices = node.gpus();
        const std::vector<int> adapters = crosses_nodes ? adapters_of(node) : std::vector<int>();
        const auto vertex = [&](int place) {
            return vertices[static_cast<std::size_t>(gpus[static_cast<std::size_t>(place)])];
        };
        for (int from = 0; from < count_; ++from) {
            for (int to = 0; to < count_; ++to) {
                between_.push_back(
                    from == to ? Transfer{}
                               : transfer_by(find_route(node, vertex(from), vertex(to)), false));
                least_ = from == to ? least_ : std::min(least_, between_.back().total());
            }
            if (crosses_nodes) {
                const auto number = static_cast<std::size_t>(gpus[static_cast<std::size_t>(from)]);
                const Route out = adapters.empty()
                                      ? find_host_route(node, vertex(from))
                                      : find_route(node, vertex(from), adapters[number]);
                out_.push_back(transfer_by(out, false));
                in_.push_back(transfer_by(out, true));
            }
        }
    }

    [[nodiscard]] Cost cost(const Order &order)
    {
        Cost cost;
        if (!out_.empty()) {
            cost = add(cost, enters(order.front()));
        }
        for (std::size_t i = 0; i + 1 < order.size(); ++i) {
            cost = add(cost, between(order[i], order[i + 1]));
        }
        cost = add(cost, last(order));
        std::fill(loads_.begin(), loads_.end(), 0);
        return cost;
    }

    // The first of the best.
    [[nodiscard]] Order search()
    {
        best_.resize(static_cast<std::size_t>(count_));
        std::iota(best_.begin(), best_.end(), 0);
        best_cost_ = cost(best_);
        const bool is_closed = out_.empty(); // then it may begin anywhere
        for (int first = 0; first < (is_closed ? 1 : count_); ++first) {
            order_ = {first};
            const Cost entry = is_closed ? Cost() : add({}, enters(first));
            extend(entry);
            if (!is_closed) {
                take_back(enters(first));
            }
        }
        return best_;
    }

    // Turns parts of the order around as long as that helps.
    [[nodiscard]] Order improve()
    {
        Order order(static_cast<std::size_t>(count_));
        std::iota(order.begin(), order.end(), 0);
        Cost least = cost(order);
        for (bool improved = true; improved;) {
            improved = false;
            for (auto first = order.begin(); first != order.end(); ++first) {
                for (auto end = first + 1; end != order.end();) {
                    ++end;
                    std::reverse(first, end);
                    if (const Cost turned = cost(order); turned < least) {
                        least = turned;
                        improved = true;
                    } else {
                        std::reverse(first, end);
                    }
                }
            }
        }
        return order;
    }

private:
    [[nodiscard]] const Transfer &between(int from, int to) const
    {
        return between_[static_cast<std::size_t>(from * count_ + to)];
    }
    [[nodiscard]] const Transfer &enters(int place) const
    {
        return in_[static_cast<std::size_t>(place)];
    }
    // Out of the node, or back to the first.
    [[nodiscard]] const Transfer &last(const Order &order) const
    {
        return out_.empty() ? between(order.back(), order.front())
                            : out_[static_cast<std::size_t>(order.back())];
    }

    [[nodiscard]] Cost add(Cost cost, const Transfer &transfer)
    {
        cost.fullest = std::max(cost.fullest, transfer.ticks);
        for (const int link : transfer.links) {
            std::int64_t &load = loads_[static_cast<std::size_t>(link)];
            load += transfer.ticks;
            cost.fullest = std::max(cost.fullest, load);
        }
        cost.total += transfer.total();
        return cost;
    }
    void take_back(const Transfer &transfer)
    {
        for (const int link : transfer.links) {
            loads_[static_cast<std::size_t>(link)] -= transfer.ticks;
        }
    }

    // The rest cannot take less than the least of all transfers each.
    [[nodiscard]] bool can_be_better(Cost cost) const
    {
        cost.total += (count_ - static_cast<int>(order_.size())) * least_;
        return cost < best_cost_;
    }

    void extend(const Cost &so_far)
    {
        if (!can_be_better(so_far)) {
            return;
        }
        if (static_cast<int>(order_.size()) == count_) {
            const Cost all = add(so_far, last(order_));
            take_back(last(order_));
            if (all < best_cost_) {
                best_cost_ = all;
                best_ = order_;
            }
            return;
        }
        for (int next = 0; next < count_; ++next) {
            if (std::find(order_.begin(), order_.end(), next) == order_.end()) {
                const Transfer &transfer = between(order_.back(), next);
                const Cost cost = add(so_far, transfer);
                order_.push_back(next);
                extend(cost);
                order_.pop_back();
                take_back(transfer);
            }
        }
    }

    int count_;
    std::vector<Transfer> between_;  // from and to
    std::vector<Transfer> out_, in_; // of the node, by place
    std::int64_t least_ = kNoPath;
    std::vector<std::int64_t> loads_; // by directed link
    Order order_, best_;
    Cost best_cost_;
};

RingOrder described(std::span<const int> gpus, const Order &order, const Cost &cost)
{
    RingOrder made{.gpus = {},
                   .gbps = cost.fullest > 0 && cost.fullest < kNoPath
                               ? kTicks / static_cast<double>(cost.fullest)
                               : 0};
    for (const int place : order) {
        made.gpus.push_back(gpus[static_cast<std::size_t>(place)]);
    }
    return made;
}

} // namespace

RingOrder ring_order(const Topology &node, std::span<const int> gpus, bool crosses_nodes)
{
    if (gpus.empty()) {
        return {};
    }
    Ways ways(node, gpus, crosses_nodes);
    const Order order =
        static_cast<int>(gpus.size()) <= kMostExactOrder ? ways.search() : ways.improve();
    return described(gpus, order, ways.cost(order));
}

RingOrder ring_in_order(const Topology &node, std::span<const int> gpus, bool crosses_nodes)
{
    if (gpus.empty()) {
        return {};
    }
    Order order(gpus.size());
    std::iota(order.begin(), order.end(), 0);
    Ways ways(node, gpus, crosses_nodes);
    return described(gpus, order, ways.cost(order));
}

} // namespace hetcoll
