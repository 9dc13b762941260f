// The shares of the algorithm `weighted` for the ranks of a communicator: as coll_hetcoll_shares
// gives them, or by the rates at which their GPUs, or nodes, reach all others.
#pragma once

#include "base/status.h"
#include "topology/record.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace hetcoll {

struct ShareSetting {
    enum class Kind : std::uint8_t { kOff, kAuto, kGiven } kind = Kind::kOff;
    std::vector<double> weights{}; // kGiven: by rank

    // The value that processes compare: 0 is kOff, 1 kAuto.
    [[nodiscard]] std::uint64_t hash() const noexcept;
};

// "off", "auto" or "3,3,0,2".
[[nodiscard]] Result<ShareSetting> parse_shares(std::string_view text);

// GB/s in each direction between each of these GPUs and the fabric that joins them, if every two of
// them reach each other at the lesser rate of both: over NVSwitches, or one PCIe switch or CPU that
// all hang on. Else nothing: links are shared in other ways. Requires valid, different numbers.
[[nodiscard]] std::vector<double> port_gbps(const Topology &node, std::span<const int> gpus);

// The same of all ranks: each with a GPU of its own on one node, or each with a node of its own,
// where the slower of network and host memory counts.
[[nodiscard]] std::vector<double> rank_gbps(const Placement &placement);

struct RankShares {
    std::vector<int> shares;    // by rank; empty: the algorithm cannot run
    std::vector<double> gbps{}; // by rank
    const char *why_none = "";  // for a person; "" if nobody asks

    // Bytes of a vector, in GB/s, that the slowest rank gets through; 0 without shares.
    [[nodiscard]] double vector_gbps() const noexcept;
};

// `rates` are rank_gbps(), or empty: then ranks count as equal, each at `otherwise_gbps`. Shares
// are for unequal links. If links are equal or unknown, there are no shares unless they are given
// or the algorithm is `forced`.
[[nodiscard]] RankShares rank_shares(const ShareSetting &setting, int ranks,
                                     std::vector<double> rates, double otherwise_gbps, bool forced);

// Without the share of a rank that comes late. Requires two ranks and more.
[[nodiscard]] std::vector<int> shares_without(std::span<const int> shares, int late);

} // namespace hetcoll
