// Modules, libraries and the kernels in them. An image is only checked for what it is: the code
// that runs is the host-compiled kernel of the same name (EMU_KERNELS).
#pragma once

#include <cstddef>

namespace hetcoll::emulated_gpu {

struct Context;

// Loads the libraries that EMU_KERNELS names. Called once, by cuInit.
void load_kernel_libraries();

void forget_modules_of(const Context *context);

// How many modules and libraries are loaded, for the leak report.
[[nodiscard]] std::size_t loaded_modules();

} // namespace hetcoll::emulated_gpu
