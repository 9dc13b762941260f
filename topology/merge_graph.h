// The graph of one node as its ranks' records tell it.
#pragma once

#include "topology/record.h"

#include <span>

namespace hetcoll {

// A GPU and what all ranks that use it know about it.
struct RecordedGpu {
    const RankRecord *record = nullptr; // of the rank that knows most
    std::span<const RankRecord *const> records{};
};

[[nodiscard]] bool has_gpu(const RankRecord &record) noexcept;

// GPU i of the result is gpus[i]; the same whatever the order of the records. Where nobody knows, a
// GPU hangs on a CPU by PCIe and the CPUs on each other.
[[nodiscard]] Result<Topology> merge_graph(std::span<const RecordedGpu> gpus);

} // namespace hetcoll
