// CUDA IPC between the processes of a node: memory by its memfd, opened through /proc, and events
// by their slot in shared memory. Nothing has a file name, so a killed process leaves nothing
// behind.
#pragma once

namespace hetcoll::emulated_gpu {

struct Context;

void close_imports_of(const Context *context);

} // namespace hetcoll::emulated_gpu
