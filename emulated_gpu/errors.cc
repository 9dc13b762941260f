// The names of error codes, generated from the cuda.h at hand, and words for those met most.
#include "emulated_gpu/calls.h"

namespace hetcoll::emulated_gpu {
namespace {

struct ErrorName {
    int code;
    const char *name;
};

constexpr ErrorName kNames[] = {
    {0, "CUDA_SUCCESS"},
#include "emulated_gpu/error_names.inc"
};

const char *name_of(CUresult code)
{
    for (const ErrorName &known : kNames) {
        if (known.code == static_cast<int>(code)) {
            return known.name;
        }
    }
    return nullptr;
}

const char *words_for(CUresult code)
{
    switch (code) {
    case CUDA_SUCCESS: return "no error";
    case CUDA_ERROR_INVALID_VALUE: return "invalid argument";
    case CUDA_ERROR_OUT_OF_MEMORY: return "out of memory";
    case CUDA_ERROR_NOT_INITIALIZED: return "initialization error";
    case CUDA_ERROR_DEINITIALIZED: return "driver shutting down";
    case CUDA_ERROR_NO_DEVICE: return "no CUDA-capable device is detected";
    case CUDA_ERROR_INVALID_DEVICE: return "invalid device ordinal";
    case CUDA_ERROR_INVALID_IMAGE: return "device kernel image is invalid";
    case CUDA_ERROR_INVALID_CONTEXT: return "invalid device context";
    case CUDA_ERROR_INVALID_HANDLE: return "invalid resource handle";
    case CUDA_ERROR_NOT_FOUND: return "named symbol not found";
    case CUDA_ERROR_NOT_READY: return "device not ready";
    case CUDA_ERROR_ILLEGAL_ADDRESS: return "an illegal memory access was encountered";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return "context is destroyed";
    case CUDA_ERROR_NOT_SUPPORTED: return "operation not supported";
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
        return "operation not permitted when stream is capturing";
    default: return name_of(code);
    }
}

CUresult answer(const char *text, const char **out)
{
    *out = text;
    return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

} // namespace
} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

// Neither is counted or made to fail: a program calls them to report another call's failure.
EMULATED_GPU_EXPORT CUresult cuGetErrorName(CUresult code, const char **out)
{
    return answer(name_of(code), out);
}

EMULATED_GPU_EXPORT CUresult cuGetErrorString(CUresult code, const char **out)
{
    return answer(words_for(code), out);
}
