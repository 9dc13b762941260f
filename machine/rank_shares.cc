#include "machine/rank_shares.h"

#include "base/hash.h"
#include "machine/topology_links.h"
#include "schedule/shares.h"
#include "topology/route.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <string>

namespace hetcoll {
namespace {

constexpr double kMostWeight = 1e6;

// Rates that differ by less are measured ones of equal links.
constexpr double kEqual = 0.97;

// One hop to what all hang on and one from there.
bool is_direct(const Route &route)
{
    return route.kind == RouteKind::kNvSwitch ||
           (route.kind == RouteKind::kPcie && route.links.size() == 2);
}

// Measured rates of equal links count as one.
void round_to_fastest(std::vector<double> &rates)
{
    const double most = rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
    for (double &rate : rates) {
        rate = rate >= kEqual * most ? most : rate;
    }
}

} // namespace

std::uint64_t ShareSetting::hash() const noexcept
{
    if (kind != Kind::kGiven) {
        return kind == Kind::kAuto ? 1 : 0;
    }
    Hash hash;
    for (const double weight : weights) {
        hash.add(static_cast<std::uint64_t>(weight));
    }
    return std::max<std::uint64_t>(hash.value(), 2);
}

Result<ShareSetting> parse_shares(std::string_view text)
{
    if (text == "off" || text == "auto") {
        return ShareSetting{text == "auto" ? ShareSetting::Kind::kAuto : ShareSetting::Kind::kOff};
    }
    ShareSetting setting{ShareSetting::Kind::kGiven};
    const char *next = text.data(), *end = next + text.size();
    for (bool more = true; more;) {
        std::uint32_t weight = 0;
        const auto [after, failure] = std::from_chars(next, end, weight);
        more = after != end;
        if (failure != std::errc() || weight > kMostWeight || (more && *after != ',')) {
            setting.weights.clear();
            break;
        }
        setting.weights.push_back(weight);
        next = after + 1;
    }
    if (std::none_of(setting.weights.begin(), setting.weights.end(),
                     [](double weight) { return weight > 0; })) {
        return error(Errc::kInvalid,
                     "coll_hetcoll_shares '%s' is unknown, write off, auto, or a whole number of "
                     "up to %.0f for each rank, not all of them 0, as 3,3,0,2",
                     std::string(text.substr(0, 40)).c_str(), kMostWeight);
    }
    return setting;
}

std::vector<double> port_gbps(const Topology &node, std::span<const int> gpus)
{
    const std::vector<int> all = node.gpus();
    std::vector<double> ports(gpus.size());
    std::vector<double> pairs(gpus.size() * gpus.size());
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        for (std::size_t j = 0; j < gpus.size(); ++j) {
            if (i == j) {
                continue;
            }
            const Route route = find_route(node, all[static_cast<std::size_t>(gpus[i])],
                                           all[static_cast<std::size_t>(gpus[j])]);
            if (!is_direct(route)) {
                return {};
            }
            pairs[i * gpus.size() + j] = route.gbps;
            ports[i] = std::max(ports[i], route.gbps);
        }
    }
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        for (std::size_t j = 0; j < gpus.size(); ++j) {
            if (i != j && pairs[i * gpus.size() + j] < kEqual * std::min(ports[i], ports[j])) {
                return {};
            }
        }
    }
    round_to_fastest(ports);
    return ports;
}

std::vector<double> rank_gbps(const Placement &placement)
{
    const std::size_t ranks = placement.gpu_of.size();
    std::vector<double> rates;
    if (placement.nodes.size() == ranks) {
        for (const PlacedNode &node : placement.nodes) {
            const Links links = links_of(node.topology, {0});
            rates.push_back(std::min(links.host_gbps, links.node_gbps));
        }
        round_to_fastest(rates);
        return rates; // nodes are in the order of their ranks
    }
    if (placement.nodes.size() != 1 || placement.gpus.size() != ranks) {
        return {};
    }
    std::vector<int> numbers;
    for (const int gpu : placement.gpu_of) {
        if (gpu == kNoGpu) {
            return {};
        }
        numbers.push_back(placement.gpus[static_cast<std::size_t>(gpu)].number);
    }
    return port_gbps(placement.nodes[0].topology, numbers);
}

double RankShares::vector_gbps() const noexcept
{
    const double sum = std::accumulate(shares.begin(), shares.end(), 0);
    double slowest = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        const double part = shares[i] / sum;
        slowest =
            std::max(slowest, (1 + (static_cast<double>(shares.size()) - 2) * part) / gbps[i]);
    }
    return slowest > 0 ? 1 / slowest : 0;
}

RankShares rank_shares(const ShareSetting &setting, int ranks, std::vector<double> rates,
                       double otherwise_gbps, bool forced)
{
    const auto none = [](const char *why) { return RankShares{.shares = {}, .why_none = why}; };
    const bool given = setting.kind == ShareSetting::Kind::kGiven;
    if (setting.kind == ShareSetting::Kind::kOff) {
        return {};
    }
    if (ranks < 2) {
        return none("it has one rank");
    }
    if (given && setting.weights.size() != static_cast<std::size_t>(ranks)) {
        return none("it has a number of shares that is not the number of ranks");
    }
    const bool unknown = rates.empty();
    if (unknown) {
        rates.assign(static_cast<std::size_t>(ranks), otherwise_gbps);
    }
    const bool equal = std::count(rates.begin(), rates.end(), rates[0]) == ranks;
    if (equal && !given && !forced) {
        return none(unknown ? "its ranks do not reach each other over one switch, each at a rate "
                              "of its own"
                            : "its links are equally fast");
    }
    std::vector<int> shares = given ? shares_of_weights(setting.weights) : shares_of_rates(rates);
    return {std::move(shares), std::move(rates), ""};
}

std::vector<int> shares_without(std::span<const int> shares, int late)
{
    std::vector<int> others(shares.begin(), shares.end());
    others[static_cast<std::size_t>(late)] = 0;
    if (std::all_of(others.begin(), others.end(), [](int share) { return share == 0; })) {
        std::fill(others.begin(), others.end(), 1);
        others[static_cast<std::size_t>(late)] = 0;
    }
    return others;
}

} // namespace hetcoll
