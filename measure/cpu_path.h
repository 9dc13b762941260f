// Measures what the path `cpu` depends on: how long the processor takes to read and write a few
// bytes of device memory, and how long a copy takes.
#pragma once

#include "base/status.h"
#include "machine/cpu_limits.h"
#include "measure/buffer.h"

#include <vector>

namespace hetcoll {

// Measures the GPU of a rank, as Gpu::open() finds it. Nothing where the processor cannot map its
// memory. Takes less than a second.
[[nodiscard]] Result<std::vector<CpuSample>> measure_cpu_path(int local_rank);

} // namespace hetcoll
