// Guards device memory against accesses that a GPU would not allow: host code gets a plain
// diagnosis and dies of SIGSEGV, device code (a copy or kernel on a stream thread) gives its
// context error 700.
#pragma once

#include <cstdint>

namespace hetcoll::emulated_gpu {

// Installs the SIGSEGV handler. The handler that was there before is called after the diagnosis.
void install_diagnosis();

// Programs install handlers of their own (Open MPI does in MPI_Init) and hide ours. Driver calls
// come here to put it back in front; it looks at the handler at most once per clock tick.
void keep_diagnosis_first();

// Runs body(argument) as device code. False if it touched memory that is not there.
[[nodiscard]] bool run_trapped(void (*body)(void *), void *argument);

} // namespace hetcoll::emulated_gpu
