#include "emulated_gpu/contexts.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/events.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/ipc.h"
#include "emulated_gpu/limits.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/modules.h"
#include "emulated_gpu/settings.h"

#include <algorithm>
#include <memory>

namespace hetcoll::emulated_gpu {
namespace {

constexpr int kStackDepth = 4096;

struct ContextStack {
    Context *context[kStackDepth];
    int depth;
};
constinit thread_local ContextStack stack{};

struct PrimaryContexts {
    std::mutex mutex;
    Context *of_device[kMaxDevices] = {};
    bool runtime_keeps[kMaxDevices] = {}; // until the process ends
};
PrimaryContexts &primaries()
{
    static PrimaryContexts &the = *new PrimaryContexts;
    return the;
}

// Every context there ever was: a destroyed one may still be current to some thread.
struct KeptContexts {
    std::mutex mutex;
    std::vector<std::shared_ptr<Context>> all;
};
KeptContexts &kept_contexts()
{
    static KeptContexts &the = *new KeptContexts;
    return the;
}

constinit std::atomic<std::uint64_t> last_life{0};

CUresult push(Context *context)
{
    if (stack.depth == kStackDepth) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    stack.context[stack.depth++] = context;
    return CUDA_SUCCESS;
}

CUresult start(Context *context)
{
    may_synchronise(context->device);
    context->life = ++last_life;
    if (context->id == 0 || !is_hostile(Hostility::kContexts)) {
        context->id = context->life;
    }
    context->peers.store(0);
    context->sync_memops.store(false);
    context->legacy = start_stream(context, true, 0);
    if (context->legacy == nullptr) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->alive.store(true, std::memory_order_release);
    return CUDA_SUCCESS;
}

// Everything made in the context goes with it, after the work that is pending.
void stop(Context *context)
{
    context->alive.store(false, std::memory_order_release);
    abandon_captures_of(context);
    may_synchronise(context->device);
    for (const StreamPointer &stream : context->all_streams()) {
        stream->wait(stream->last());
        stream->close();
    }
    streams().take_if([context](const Stream &stream) { return stream.context == context; });
    forget_events_of(context);
    forget_modules_of(context);
    close_imports_of(context);
    release_all_of(context);
    const std::lock_guard lock(context->submit_mutex);
    context->streams.clear();
}

Context *new_context(int device, bool primary)
{
    auto context = std::make_shared<Context>();
    context->device = device;
    context->primary = primary;
    context->handle = static_cast<CUcontext>(contexts().add(context));
    const std::lock_guard lock(kept_contexts().mutex);
    kept_contexts().all.push_back(context);
    return context.get();
}

CUresult create(CUcontext *out, unsigned flags, CUdevice device)
{
    EMULATED_TRY(check_device(device));
    if (out == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Context *context = new_context(device, false);
    context->flags.store(flags);
    EMULATED_TRY(start(context));
    *out = context->handle;
    return push(context);
}

// The last context that had this handle, null if none ever had.
Context *find_even_dead(CUcontext handle)
{
    if (Context *const lives = find_context(handle); lives != nullptr) {
        return lives;
    }
    const std::lock_guard lock(kept_contexts().mutex);
    const auto &all = kept_contexts().all;
    const auto last = std::find_if(all.rbegin(), all.rend(), [handle](const auto &context) {
        return context->handle == handle;
    });
    return last != all.rend() ? last->get() : nullptr;
}

// The context that a call names, or the current one for null. One that is reset is as dead as one
// that is destroyed.
Context *named_context(CUcontext handle)
{
    Context *context = handle != nullptr ? find_context(handle) : current_context();
    if (handle != nullptr && context != nullptr && !context->alive.load() &&
        is_hostile(Hostility::kContexts)) {
        abort_on_dead("context", handle);
    }
    return context;
}

CUresult synchronize(Context *context)
{
    EMULATED_TRY(refuse_while_capturing(context));
    for (const StreamPointer &stream : context->all_streams()) {
        stream->wait(stream->last());
    }
    return static_cast<CUresult>(context->sticky_error.load());
}

} // namespace

std::vector<StreamPointer> Context::all_streams()
{
    const std::lock_guard lock(submit_mutex);
    std::vector<StreamPointer> all = streams;
    if (legacy != nullptr) {
        all.push_back(legacy);
    }
    return all;
}

HandleTable<Context> &contexts()
{
    static HandleTable<Context> &the = *new HandleTable<Context>("context", Hostility::kContexts);
    return the;
}

Context *current_context() { return stack.depth > 0 ? stack.context[stack.depth - 1] : nullptr; }

CUresult usable_context(Context *&context)
{
    context = current_context();
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!context->alive.load(std::memory_order_acquire)) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return static_cast<CUresult>(context->sticky_error.load());
}

Context *find_context(CUcontext handle) { return contexts().find(handle).get(); }

CUresult check_device(CUdevice device)
{
    return device >= 0 && device < settings().device_count ? CUDA_SUCCESS
                                                           : CUDA_ERROR_INVALID_DEVICE;
}

std::string retained_contexts()
{
    std::string text;
    const std::lock_guard lock(primaries().mutex);
    for (int device = 0; device < kMaxDevices; ++device) {
        const Context *context = primaries().of_device[device];
        const int kept = primaries().runtime_keeps[device] ? 1 : 0;
        if (context != nullptr && context->retains > kept) {
            text += "primary context of device " + std::to_string(device) + ", retained " +
                    std::to_string(context->retains - kept) + " time(s)\n";
        }
    }
    return text;
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT void emulated_gpu_runtime_keeps(int device, int keeps)
{
    const std::lock_guard lock(primaries().mutex);
    primaries().runtime_keeps[device] = keeps != 0;
}

EMULATED_GPU_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    EMULATED_CALL(cuDevicePrimaryCtxRetain);
    EMULATED_TRY(check_device(device));
    const std::lock_guard lock(primaries().mutex);
    Context *&context = primaries().of_device[device];
    if (context == nullptr) {
        context = new_context(device, true);
    }
    if (!context->alive.load()) {
        EMULATED_TRY(static_cast<CUresult>(context->sticky_error.load())); // a reset heals nothing
        EMULATED_TRY(start(context));
    }
    ++context->retains;
    *out = context->handle;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    EMULATED_CALL(cuDevicePrimaryCtxRelease);
    EMULATED_TRY(check_device(device));
    const std::lock_guard lock(primaries().mutex);
    Context *context = primaries().of_device[device];
    if (context == nullptr || context->retains == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--context->retains == 0 && context->alive.load()) {
        stop(context);
    }
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    EMULATED_CALL(cuDevicePrimaryCtxReset);
    EMULATED_TRY(check_device(device));
    const std::lock_guard lock(primaries().mutex);
    Context *context = primaries().of_device[device];
    if (context != nullptr && context->alive.load()) {
        stop(context); // those who retained it still have to release it
    }
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags,
                                                        int *active)
{
    EMULATED_CALL(cuDevicePrimaryCtxGetState);
    EMULATED_TRY(check_device(device));
    const std::lock_guard lock(primaries().mutex);
    const Context *context = primaries().of_device[device];
    *flags = context != nullptr ? context->flags.load() : 0;
    *active = context != nullptr && context->alive.load();
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags)
{
    EMULATED_CALL(cuDevicePrimaryCtxSetFlags);
    EMULATED_TRY(check_device(device));
    const std::lock_guard lock(primaries().mutex);
    Context *&context = primaries().of_device[device];
    if (context == nullptr) {
        context = new_context(device, true);
    }
    context->flags.store(flags);
    return CUDA_SUCCESS;
}

// cuCtxCreate differs between the releases of cuda.h, its versions do not.
#undef cuCtxCreate
EMULATED_GPU_EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
    EMULATED_CALL(cuCtxCreate);
    return create(out, flags, device);
}

#if CUDA_VERSION >= 12050
EMULATED_GPU_EXPORT CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *parameters,
                                            unsigned flags, CUdevice device)
{
    EMULATED_CALL(cuCtxCreate);
    if (parameters != nullptr &&
        (parameters->numExecAffinityParams != 0 || parameters->cigParams != nullptr)) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return create(out, flags, device);
}
#endif

EMULATED_GPU_EXPORT CUresult cuCtxDestroy(CUcontext handle)
{
    EMULATED_CALL(cuCtxDestroy);
    Context *context = find_context(handle);
    if (context == nullptr || context->primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (current_context() == context) {
        --stack.depth;
    }
    contexts().take(handle);
    stop(context);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxPushCurrent(CUcontext handle)
{
    EMULATED_CALL(cuCtxPushCurrent);
    Context *context = find_even_dead(handle);
    return context != nullptr ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

EMULATED_GPU_EXPORT CUresult cuCtxPopCurrent(CUcontext *out)
{
    EMULATED_CALL(cuCtxPopCurrent);
    if (stack.depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (out != nullptr) {
        *out = current_context()->handle;
    }
    --stack.depth;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxSetCurrent(CUcontext handle)
{
    EMULATED_CALL(cuCtxSetCurrent);
    if (handle == nullptr) {
        stack.depth = stack.depth > 0 ? stack.depth - 1 : 0;
        return CUDA_SUCCESS;
    }
    Context *context = find_context(handle);
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (stack.depth == 0) {
        return push(context);
    }
    stack.context[stack.depth - 1] = context;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxGetCurrent(CUcontext *out)
{
    EMULATED_CALL(cuCtxGetCurrent);
    *out = current_context() != nullptr ? current_context()->handle : nullptr;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    EMULATED_CALL(cuCtxGetDevice);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    *device = context->device;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
    EMULATED_CALL(cuCtxGetDevice);
    const Context *context = named_context(handle);
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *device = context->device;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    EMULATED_CALL(cuCtxGetId);
    const Context *context = named_context(handle);
    if (context == nullptr) {
        context = find_even_dead(handle);
    }
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!context->alive.load()) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *id = context->id;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxGetFlags(unsigned *flags)
{
    EMULATED_CALL(cuCtxGetFlags);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    *flags = context->flags.load();
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxSetFlags(unsigned flags)
{
    EMULATED_CALL(cuCtxSetFlags);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    context->flags.fetch_or(flags);
#if CUDA_VERSION >= 12010
    if ((flags & CU_CTX_SYNC_MEMOPS) != 0) {
        context->sync_memops.store(true);
    }
#endif
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxGetApiVersion(CUcontext, unsigned *version)
{
    EMULATED_CALL(cuCtxGetApiVersion);
    *version = 3020;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    EMULATED_CALL(cuCtxGetStreamPriorityRange);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    if (least != nullptr) {
        *least = 0;
    }
    if (greatest != nullptr) {
        *greatest = -5; // as an H100
    }
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxSynchronize(void)
{
    EMULATED_CALL(cuCtxSynchronize);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    return synchronize(context);
}

EMULATED_GPU_EXPORT CUresult cuCtxSynchronize_v2(CUcontext handle)
{
    EMULATED_CALL(cuCtxSynchronize);
    Context *context = named_context(handle);
    return context != nullptr ? synchronize(context) : CUDA_ERROR_INVALID_CONTEXT;
}

EMULATED_GPU_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags)
{
    EMULATED_CALL(cuCtxEnablePeerAccess);
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    may_synchronise();
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    const Context *peer = handle != nullptr ? named_context(handle) : nullptr;
    if (peer == nullptr || peer == context) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const auto &physical = settings().physical_device;
    if (!peers_reach(physical[context->device], physical[peer->device])) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    if ((context->peers.load() & 1u << peer->device) != 0) {
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    }
    return add_peer(*context, peer->device);
}

EMULATED_GPU_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext handle)
{
    EMULATED_CALL(cuCtxDisablePeerAccess);
    may_synchronise();
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    const Context *peer = find_context(handle);
    if (peer == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    const unsigned bit = 1u << peer->device;
    return (context->peers.fetch_and(~bit) & bit) != 0 ? CUDA_SUCCESS
                                                       : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

EMULATED_GPU_EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit)
{
    EMULATED_CALL(cuCtxGetLimit);
    *value = 8 << 20;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuCtxSetLimit(CUlimit, size_t)
{
    EMULATED_CALL(cuCtxSetLimit);
    return CUDA_SUCCESS;
}
