// Errors that ruin a context: calls that use it answer them (usable_context), and some that do not.
// From a hostile driver nearly every call does that is made with the context current.
#pragma once

#include <cuda.h>

namespace hetcoll::emulated_gpu {

// From a hostile driver an injected error of that kind ruins the current context too: 700 and 719.
void note_sticky_error(CUresult injected);

// The answer of this entry point because of an error that the current context had: CUDA_SUCCESS if
// there was none, or the call ends the context or has nothing to do with it.
[[nodiscard]] CUresult answer_of_ruined_context(const char *call);

} // namespace hetcoll::emulated_gpu
