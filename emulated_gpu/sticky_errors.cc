#include "emulated_gpu/sticky_errors.h"

#include "emulated_gpu/contexts.h"
#include "emulated_gpu/hostility.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace hetcoll::emulated_gpu {
namespace {

// The calls that a program needs to leave or end a ruined context, and those that concern none.
constexpr std::string_view kSpared[] = {
    "cuInit",          "cuDriverGetVersion", "cuGetProcAddress", "cuGetExportTable",
    "cuCtxCreate",     "cuCtxDestroy",       "cuCtxPushCurrent", "cuCtxPopCurrent",
    "cuCtxSetCurrent", "cuCtxGetCurrent"};

// The calls that an H200's driver refuses then, although they do not use the context.
constexpr std::string_view kRefusedByAll[] = {"cuMemGetAddressRange", "cuIpcGetMemHandle",
                                              "cuEventDestroy", "cuStreamDestroy"};

template <std::size_t count> bool has(const std::string_view (&calls)[count], std::string_view call)
{
    return std::find(std::begin(calls), std::end(calls), call) != std::end(calls);
}

bool is_spared(std::string_view call)
{
    return is_hostile(Hostility::kErrors) ? call.starts_with("cuDevice") || has(kSpared, call)
                                          : !has(kRefusedByAll, call);
}

} // namespace

void note_sticky_error(CUresult injected)
{
    const bool sticks =
        injected == CUDA_ERROR_ILLEGAL_ADDRESS || injected == CUDA_ERROR_LAUNCH_FAILED;
    if (Context *context = current_context();
        sticks && context != nullptr && is_hostile(Hostility::kErrors)) {
        context->sticky_error.store(injected);
    }
}

CUresult answer_of_ruined_context(const char *call)
{
    const Context *context = current_context();
    if (context == nullptr || !context->alive.load(std::memory_order_acquire)) {
        return CUDA_SUCCESS;
    }
    const int error = context->sticky_error.load();
    return error == CUDA_SUCCESS || is_spared(call) ? CUDA_SUCCESS : static_cast<CUresult>(error);
}

} // namespace hetcoll::emulated_gpu
