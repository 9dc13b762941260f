// Which of the kernels' code a GPU runs, by the flags that nvcc had.
#pragma once

#include <string>

namespace hetcoll {

enum class KernelCode {
    kMachine, // for this GPU, or an earlier one of its generation
    kPtx,     // the driver compiles it
    kNone
};

// `flags` such as "-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=compute_80";
// `capability` is 86 for 8.6. (CUDA C++ Programming Guide, Application Compatibility.)
[[nodiscard]] KernelCode kernel_code_for(const std::string &flags, int capability);

} // namespace hetcoll
