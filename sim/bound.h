// A lower bound for any allreduce on a cluster.
#pragma once

#include "machine/ranks.h"

namespace hetcoll {

// Large vectors: cut the GPUs into k parts. k-1 partial sums must leave their part and k-1 results
// must come in, so 2(k-1) vectors leave some part. With w the capacity between the parts in one
// direction, half of what all parts can send, that takes (k-1) M/w; half of it where switches
// reduce, as each part's sum leaves it once. And of every element a sum or the result must leave
// each part, so the narrowest takes M over what it sends. A node's rate is a maximum flow of
// its GPUs (topology/out_flow.h): what no GPU can fill of its adapters does not count. The worst of
// these partitions counts: racks, nodes, single GPUs, and on one node all partitions of up to eight
// GPUs.
//
// Small vectors: ceil(log2 nodes) messages between nodes one after the other, and the way of the
// vector to its node's network card and back: copies out and in and the ranks' two meetings on the
// node. On one node: a kernel and its two meetings.
struct Bound {
    double bandwidth_us = 0, latency_us = 0;
    [[nodiscard]] double us() const noexcept
    {
        return bandwidth_us > latency_us ? bandwidth_us : latency_us;
    }
};

[[nodiscard]] Bound lower_bound(const Cluster &cluster, const Ranks &ranks, double bytes,
                                bool switches_reduce = false);

} // namespace hetcoll
