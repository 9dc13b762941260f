// Tensors reduced as Horovod reduces them: copied one behind the other into a fusion buffer, which
// one MPI_Allreduce reduces in place, and copied back.
#pragma once

#include "measure/workload.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace hetcoll {

// Tensors [first, end) of the list, in one fusion buffer.
struct FusedRange {
    std::size_t first, end;
};

// Horovod pads each tensor to this many bytes; what is in the padding is reduced along.
inline constexpr std::size_t kFusionPaddingBytes = 16;

// Fills each buffer with as many tensors as `threshold_bytes` hold; a larger tensor goes alone.
[[nodiscard]] std::vector<FusedRange> plan_fusion(std::span<const std::size_t> tensor_counts,
                                                  std::size_t element_bytes,
                                                  std::size_t threshold_bytes);

// The given tensors of float in one fusion buffer, summed. Every tensor has memory of its own. The
// padding holds patterns of NaN and whatever else uninitialised memory may hold.
Result<std::unique_ptr<Workload>> make_fused(const Gpu *gpu, Memory memory,
                                             std::span<const std::size_t> tensor_counts);

} // namespace hetcoll
