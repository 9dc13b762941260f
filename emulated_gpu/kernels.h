// Kernel launches.
#pragma once

#include "emulated_gpu/handles.h"
#include "emulated_gpu/kernel_abi.h"

#include <cstdint>
#include <mutex>
#include <set>

namespace hetcoll::emulated_gpu {

struct Context;

struct Function {
    Function(const emulated_gpu_kernel *of, Context *with) : kernel(of), context(with) {}

    const emulated_gpu_kernel *const kernel;
    Context *const context; // of its module; null for a library's

    // A library's kernel is loaded when it is first used in a context: true then.
    [[nodiscard]] bool is_new_to(std::uint64_t context_life);

private:
    std::mutex mutex_;
    std::set<std::uint64_t> loaded_in_;
};

[[nodiscard]] HandleTable<Function> &functions();

} // namespace hetcoll::emulated_gpu
