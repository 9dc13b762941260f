// coll_hetcoll_verbose: what a job is made of, told once, for people who know NCCL_DEBUG=INFO.
// Level 1 has a line a fact: each rank's GPU; of each node the links, who reads whose memory, and
// what algorithms are chosen by; what ranks have set differently; of each communicator who serves
// its first call on device memory and its first larger one. Level 2 has a line for each kind of
// call too.
#pragma once

#include "engine/communicator/known_peers.h"
#include "engine/meeting/node_group.h"
#include "engine/process/call_record.h"
#include "engine/process/process.h"
#include "machine/ranks.h"

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <tuple>

namespace hetcoll {

// This rank's, in whose memory `pointer` is: once a process.
void tell_gpu(Process &process, const PointerInfo &pointer) noexcept;

// Why the ranks of a node do not read each other's memory; null: they do, as far as they reach it.
using WhyNot = const char *;
// By the first rank of each node: once a process.
void tell_node(Process &process, const NodeGroup &group, const Placement &placement,
               const KnownPeers &found, WhyNot why_not);

// facts[r] are those of rank r. By rank 0 of a communicator: once a process.
void tell_differences(Process &process, std::span<const hetcoll_facts> facts);

// The story of one communicator, told by its rank 0.
class Story {
public:
    // Requires that level 1 is shown. A call that succeeded.
    void tell(const Log &log, const CallRecord &record, std::size_t small_limit) noexcept;

private:
    // The content of a line: call, power of two of the bytes, who served it, path.
    using Kind = std::tuple<std::string, int, std::string, CallPath>;

    bool told_device_ = false, told_larger_ = false;
    std::set<Kind> told_;
};

} // namespace hetcoll
