// Allreduce in the network: switches that reduce what their ports bring and send the sum back (Liu
// et al., In-network aggregation with transport transparency for distributed training (NetReduce),
// ASPLOS 2023). Switches are participants like ranks, so that one schedule is proved, simulated and
// run: ranks are participants 0 to ranks-1, then come the leaf switches, then, if there are several
// leaves, the spine that joins them.
//
// A block is a message. A rank sends message k to its leaf, which adds what its ranks have sent, in
// their order; the spine adds the leaves' sums likewise, and the result goes down again. A rank has
// `window` messages on their way at most: it sends message k + window when result k has arrived.
// So a switch needs memory for `window` messages a port, however long the vector is.
//
// If a node has several ranks, each of them owns a slice of the vector: a ring's reduce-scatter on
// the node, every owner's slice through the network, all of them concurrently, a ring's allgather
// on the node (the paper's parallel NetReduce).
//
// Cost for M bytes in messages of m, n ranks on each node, 1 or 2 levels of switches h, rates B on
// the node and C of its network card, latency a of a hop; 2h hops there and back, and a message is
// passed on when it is complete, so that one takes R = 2h (a + m/C):
//
//           hops or rounds   a rank sends          time
//   node    2(n-1)           2(n-1)/n vectors      2(n-1) a + 2(n-1)/n M/B
//   network 2h               1/n vector            2h a + M/C + (2h-1) m/C, if window m/C >= R;
//                                                  else R for every window of messages
//
// If nobody reduces for a rank, it sends at least 2(n-1)/n vectors: twice as much.
#pragma once

#include "schedule/schedule.h"

#include <cstdint>
#include <vector>

namespace hetcoll {

// Who is connected to what; the same on all ranks. The ranks of a node have consecutive numbers,
// and so have the nodes.
struct SwitchTree {
    int ranks_per_node = 1;
    std::vector<int> leaf_of; // by node: its leaf, below leaf_count, each with at least one node
    int leaf_count = 1;
    int messages = 1; // of a rank; a vector is cut into messages * ranks_per_node blocks
    int window = 2;   // at least 1

    [[nodiscard]] int nodes() const noexcept { return static_cast<int>(leaf_of.size()); }
    [[nodiscard]] int ranks() const noexcept { return nodes() * ranks_per_node; }
    [[nodiscard]] int participants() const noexcept
    {
        return ranks() + leaf_count + (leaf_count > 1 ? 1 : 0);
    }
    [[nodiscard]] int leaf(int index) const noexcept { return ranks() + index; }
    [[nodiscard]] int spine() const noexcept { return ranks() + leaf_count; } // if there are leaves
    [[nodiscard]] int block_count() const noexcept { return messages * ranks_per_node; }
};

// Into how many messages of at most `message_bytes` a rank cuts its part of a vector; at least 1.
[[nodiscard]] constexpr int message_count(std::uint64_t bytes, std::uint64_t message_bytes) noexcept
{
    return bytes == 0 ? 1 : static_cast<int>((bytes + message_bytes - 1) / message_bytes);
}

// The steps of a switch, for vectors of any length. It keeps no list: a rank has few
// steps, but a switch has some for every message and port.
//
// A step waits for one other at most. Steps are in the order of the messages, and within a message:
// receives of the ports in their order, the send up, the receive from above, sends to the ports.
// Messages up use channel 0, messages down channel 1. Steps of different ports need not
// keep the order: each port has a link of its own.
class SwitchSteps {
public:
    // Requires tree.ranks() <= participant < tree.participants().
    SwitchSteps(const SwitchTree &tree, int participant);

    struct LazyStep {
        Step step; // its list of steps to wait for is empty; `after` is what would be in it
        std::int64_t after; // -1: nothing
    };
    [[nodiscard]] std::int64_t count() const noexcept
    {
        return std::int64_t{messages_} * steps_per_round();
    }
    // Requires 0 <= index < count().
    [[nodiscard]] LazyStep at(std::int64_t index) const noexcept;

private:
    // The steps of one message of every slice.
    [[nodiscard]] int steps_per_round() const noexcept { return slices_ * steps_per_message(); }
    [[nodiscard]] int steps_per_message() const noexcept
    {
        return 2 * ports_ + (above_ < 0 ? 0 : 2);
    }
    [[nodiscard]] int peer(int port, int slice) const noexcept;

    int slices_, messages_;
    int ports_;
    bool is_spine_;
    int first_leaf_;
    int above_ = -1;         // the spine, seen from a leaf
    std::vector<int> nodes_; // of a leaf, by port
};

// The schedule of one participant, with 2 channels. Proved against allreduce_in_network(ranks).
// Requires 0 <= participant < tree.participants().
[[nodiscard]] Schedule build_in_network(const SwitchTree &tree, int participant);

} // namespace hetcoll
