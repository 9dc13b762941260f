// Which CUDA release the driver is of. EMU_DRIVER plays an older one: what came later is missing,
// for dlsym too.
#pragma once

#include <cuda.h>

#include <string>
#include <string_view>

namespace hetcoll::emulated_gpu {

// As cuDriverGetVersion says it: 12020.
[[nodiscard]] int driver_version();

// Whether this driver knows an attribute of devices at all.
[[nodiscard]] bool knows(CUdevice_attribute attribute);

// The symbol of an entry point's newest version up to a release; empty if it is younger.
[[nodiscard]] std::string symbol_name(std::string_view call, int version);

} // namespace hetcoll::emulated_gpu
