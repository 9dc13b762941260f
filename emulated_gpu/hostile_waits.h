// EMU_HOSTILE: calls that may wait for the device do. Which ones may, and who says so: README.md.
#pragma once

namespace hetcoll::emulated_gpu {

struct Context;

// For an entry point that may synchronise: waits for everything submitted to the device of the
// current context, also for another library's kernel that waits for another process. Requires no
// lock.
void may_synchronise();
// The same for a call that names its context or device.
void may_synchronise(int device);

} // namespace hetcoll::emulated_gpu
