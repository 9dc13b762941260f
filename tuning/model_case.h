// The terms that the forms of the model are written in, and the forms of the hierarchy, which are
// many.
#pragma once

#include "schedule/rounds.h"
#include "tuning/model.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace hetcoll {

// Half of Rabenseifner's exchanges cross the network's middle, while in the ring a rank talks to
// its neighbours only: the same bytes take this much longer, so the ring is taken if its messages
// cost less than an eighth of its bytes.
inline constexpr double kCrossing = 1.125;
// A reduction reads two operands and writes one.
inline constexpr double kReductionTraffic = 3;
inline double us(double bytes, double gbps) { return bytes / (gbps * 1e3); }

inline int log2_floor(int value) { return std::bit_width(static_cast<unsigned>(value)) - 1; }
inline int log2_ceil(int value)
{
    return log2_floor(value) + (std::has_single_bit(unsigned(value)) ? 0 : 1);
}

// The call in the words of the forms.
struct Case {
    explicit Case(const Query &query_of_call)
        : query(query_of_call), links(query.links), bytes(static_cast<double>(query.bytes)),
          ranks(std::max(query.ranks, 1)), nodes(std::clamp(query.nodes, 1, ranks)),
          local(node_shape(query).max), local_min(node_shape(query).min),
          sharing(std::clamp(query.ranks_per_gpu, 1, local))
    {
        one_gpu = local == sharing;
        gpus = (local + sharing - 1) / sharing;
    }

    // One step on a node: ranks of one GPU launch and copy in turn, and share its port.
    [[nodiscard]] double turns_us() const { return (sharing - 1) * links.launch_us; }
    [[nodiscard]] double near_us() const
    {
        return (mapped() ? links.gpu_latency_us : links.host_latency_us) + turns_us();
    }
    [[nodiscard]] double near_gbps() const
    {
        if (!mapped()) {
            return links.host_gbps / sharing;
        }
        return one_gpu ? links.memory_gbps / 2 / sharing : links.gpu_gbps / sharing;
    }
    // A ring leaves a GPU only once, and several leave it by other links.
    [[nodiscard]] double ring_gbps() const
    {
        if (!mapped() || one_gpu) {
            return near_gbps();
        }
        return links.link_ring_gbps > 0 ? links.link_ring_gbps
               : links.ring_gbps > 0    ? links.ring_gbps
                                        : links.gpu_gbps;
    }
    // Both ways at once along the ranks; through memory of the host both take the same way.
    [[nodiscard]] double chain_gbps() const
    {
        return !mapped() || one_gpu   ? near_gbps() / 2
               : links.chain_gbps > 0 ? links.chain_gbps
                                      : ring_gbps();
    }
    // Between nodes, while `crossing` ranks of a node send at once.
    [[nodiscard]] double far_gbps(double crossing) const
    {
        return std::min(links.host_gbps, links.node_gbps / crossing);
    }
    // The rate along a chain of nodes. A node has two neighbours unless there are only two nodes.
    // `neighbours` is 2 for a rank that talks to both of them, else 1.
    [[nodiscard]] double chain_far_gbps(int neighbours) const
    {
        return nodes > 2 ? std::min(links.host_gbps / neighbours, links.node_gbps / 2)
                         : far_gbps(1);
    }
    [[nodiscard]] bool mapped() const { return links.gpu_gbps > 0; }
    [[nodiscard]] double memory_us(double traffic) const { return us(traffic, links.memory_gbps); }
    [[nodiscard]] double reduction_us(double reduced) const
    {
        return memory_us(kReductionTraffic * reduced * sharing);
    }
    // Every GPU reads `remote` bytes of the others, and they read as much of it.
    [[nodiscard]] double all_to_all_us(double remote) const
    {
        if (one_gpu) {
            return 0;
        }
        if (mapped() && links.exchange_gbps > 0) {
            return us(remote, links.exchange_gbps);
        }
        const double share = links.switched ? 1 : gpus * gpus / (4 * (gpus - 1)); // of the middle
        return us(remote * std::max(share, 1.0), mapped() ? links.gpu_gbps : links.host_gbps);
    }

    const Query &query;
    const Links &links;
    double bytes;
    int ranks, nodes, local, local_min, sharing;
    double gpus; // of a node
    bool one_gpu;
};

// What an algorithm costs.
struct Model {
    // `chunk`: most bytes in one message.
    Prediction (*predict)(const Case &c, double chunk);
    // A message's bytes for enough chunks to overlap; bounded by the caller.
    std::uint64_t (*chunk)(const Case &c);
};

// An algorithm that exchanges messages in rounds, on `bytes` over links of this rate.
[[nodiscard]] Prediction predict_rounds(const TeamCost &cost, const Case &c, double bytes,
                                        double step_us, double gbps, double chunk);

// The best one among the ranks that own the same slice, one on each node.
[[nodiscard]] Algorithm best_between_nodes(const Case &c, double chunk);
// How many slices a node exchanges with other nodes at once.
[[nodiscard]] inline int lanes_of(const Case &c) { return std::max(c.local_min / c.sharing, 1); }
[[nodiscard]] bool over_trees(const Case &c, double chunk);
// Over trees if that is faster.
[[nodiscard]] Prediction hierarchical(const Case &c, double chunk);

} // namespace hetcoll
