// Shared by the files of the emulated CUDA runtime: libcudart.so.13 by the driver API alone. Every
// call makes the device's primary context current if the thread has none, as the real runtime does,
// and a failure becomes the thread's last error. Error codes are the same numbers in both APIs.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#define EMULATED_RUNTIME_EXPORT extern "C" __attribute__((visibility("default")))

// The driver's answer of what is not emulated.
extern "C" CUresult emulated_gpu_unsupported(const char *name);

namespace hetcoll::emulated_runtime {

// Notes a failure as the thread's last error. Returns the same.
cudaError_t answer(cudaError_t result);
cudaError_t answer(CUresult result);

// cuInit, and a context of the thread.
[[nodiscard]] CUresult use_context();

template <class Call> cudaError_t in_context(Call call)
{
    const CUresult result = use_context();
    return answer(result == CUDA_SUCCESS ? call() : result);
}

inline CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

} // namespace hetcoll::emulated_runtime
