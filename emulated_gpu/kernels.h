// Kernel launches.
#pragma once

#include "emulated_gpu/handles.h"
#include "emulated_gpu/kernel_abi.h"

namespace hetcoll::emulated_gpu {

struct Context;

struct Function {
    const emulated_gpu_kernel *kernel;
    Context *context; // of its module; null for a library's
};

[[nodiscard]] HandleTable<Function> &functions();

} // namespace hetcoll::emulated_gpu
