// Whether MPI calls may be given device memory in this process.
#pragma once

namespace hetcoll {

// True where hetcoll's component is on, or Open MPI says that it is CUDA-aware. Requires MPI to be
// initialized.
[[nodiscard]] bool takes_device_memory();

} // namespace hetcoll
