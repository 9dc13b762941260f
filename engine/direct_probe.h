// Tries whether Open MPI's messages carry device memory, where it says that they do.
#pragma once

#include "base/p2p.h"
#include "device/device.h"

namespace hetcoll {

// Sends device memory to this process itself through `self`, whose only rank is 0, and compares.
// False if the bytes do not arrive, or if a driver or network call fails. The context is current.
[[nodiscard]] bool carries_device_memory(Device &device, const hetcoll_p2p &self, int tag);

} // namespace hetcoll
