// The life of the driver in a process, the look-up of entry points by name and version, and the
// answer of those that are not emulated.
#include "emulated_gpu/calls.h"
#include "emulated_gpu/driver_versions.h"
#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/handles.h"
#include "emulated_gpu/leaks.h"
#include "emulated_gpu/modules.h"
#include "emulated_gpu/node.h"
#include "emulated_gpu/protection.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"
#include "emulated_gpu/window.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace hetcoll::emulated_gpu {
namespace {

void on_fork_in_child()
{
    if (driver_state() == DriverState::kReady) {
        set_driver_state(DriverState::kForked); // as CUDA: only the parent can go on using it
    }
}

CUresult initialize()
{
    if (settings().device_count == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    if (!reserve_window()) {
        say("no room for %zu GiB of device addresses (EMU_WINDOW_GB, ulimit -v); cuInit fails",
            settings().window_bytes >> 30);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (own_library() == nullptr) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    EMULATED_TRY(join_node());
    load_kernel_libraries();
    install_diagnosis();
    pthread_atfork(nullptr, nullptr, on_fork_in_child);
    set_driver_state(DriverState::kReady);
    return CUDA_SUCCESS;
}

// Runs after the destructors and exit handlers of everything that was loaded later.
__attribute__((destructor)) void finish()
{
    const DriverState before = driver_state();
    if (before == DriverState::kForked) {
        return;
    }
    report_calls();
    if (before == DriverState::kReady) {
        report_leaks();
        leave_node();
    }
    set_driver_state(DriverState::kTornDown);
}

void *find_symbol(const std::string &symbol)
{
    return symbol.empty() ? nullptr : dlsym(own_library(), symbol.c_str());
}

CUresult get_address(const char *name, void **out, int version,
                     CUdriverProcAddressQueryResult *status)
{
    if (name == nullptr || out == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = find_symbol(symbol_name(name, version));
    if (status != nullptr) {
        *status =
            *out != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        return CUDA_SUCCESS;
    }
    return *out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// An entry point that is not emulated has no call site of its own: it gets one when first called.
CallSite &site_of(const char *name)
{
    static std::mutex &mutex = *new std::mutex;
    static auto &sites = *new std::map<std::string_view, CallSite *>;
    static auto &storage = *new std::deque<CallSite>;
    const std::lock_guard lock(mutex);
    CallSite *&site = sites[name];
    if (site == nullptr) {
        site = &storage.emplace_back(name);
    }
    return *site;
}

} // namespace

void *own_library()
{
    static void *own = [] {
        Dl_info info;
        dladdr(reinterpret_cast<void *>(&emulated_gpu_version), &info);
        return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    }();
    return own;
}

bool is_entry_point(const std::string &name)
{
    return name.starts_with("cu") && find_symbol(name) != nullptr;
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT const char *emulated_gpu_version(void) { return "1"; }

EMULATED_GPU_EXPORT CUresult cuInit(unsigned flags)
{
    EMULATED_CALL_ANY_TIME(cuInit);
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (driver_state() == DriverState::kForked) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    static const CUresult result = initialize();
    return result;
}

EMULATED_GPU_EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version,
                                                 cuuint64_t, CUdriverProcAddressQueryResult *status)
{
    EMULATED_CALL_ANY_TIME(cuGetProcAddress);
    return get_address(name, out, version, status);
}

#undef cuGetProcAddress
EMULATED_GPU_EXPORT CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t)
{
    EMULATED_CALL_ANY_TIME(cuGetProcAddress);
    return get_address(name, out, version, nullptr);
}

// The private tables that the CUDA runtime asks for are not documented and not emulated.
EMULATED_GPU_EXPORT CUresult cuGetExportTable(const void **out, const CUuuid *)
{
    EMULATED_CALL_ANY_TIME(cuGetExportTable);
    *out = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}

// Every entry point that no file here defines comes to this one: see generate.sh.
EMULATED_GPU_EXPORT CUresult emulated_gpu_unsupported(const char *name)
{
    if (const CUresult refused = site_of(name).enter(CallSite::When::kNeedsInit);
        refused != CUDA_SUCCESS) {
        return refused;
    }
    if (settings().strict) {
        say("%s is not emulated, it answers CUDA_ERROR_NOT_SUPPORTED", name);
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}
