#include "emulated_gpu/modules.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/driver_versions.h"
#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/kernel_abi.h"
#include "emulated_gpu/kernels.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace hetcoll::emulated_gpu {
namespace {

struct Module {
    Context *context; // null for a library, which belongs to none
    std::mutex mutex;
    std::map<std::string, void *> functions; // the handles of those asked for

    [[nodiscard]] bool has(const char *name)
    {
        const std::lock_guard lock(mutex);
        return functions.contains(name);
    }
};

HandleTable<Module> &modules()
{
    static HandleTable<Module> &the = *new HandleTable<Module>("module");
    return the;
}

// Every host-compiled kernel.
struct Kernels {
    std::mutex mutex;
    std::map<std::string_view, const emulated_gpu_kernel *> by_name;
};
Kernels &kernels()
{
    static Kernels &the = *new Kernels;
    return the;
}

bool add_kernels(const emulated_gpu_kernel_table &table, const char *from)
{
    if (table.abi != EMULATED_GPU_KERNEL_ABI) {
        say("%s has kernel table version %u, this driver needs %d", from, table.abi,
            EMULATED_GPU_KERNEL_ABI);
        return false;
    }
    const std::lock_guard lock(kernels().mutex);
    for (std::uint32_t i = 0; i < table.count; ++i) {
        kernels().by_name[table.kernels[i].name] = &table.kernels[i];
    }
    return true;
}

const emulated_gpu_kernel *find_kernel(const char *name)
{
    const std::lock_guard lock(kernels().mutex);
    const auto found = kernels().by_name.find(name);
    return found != kernels().by_name.end() ? found->second : nullptr;
}

void load_kernel_library(const std::string &path)
{
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != nullptr ? dlsym(library, EMULATED_GPU_KERNELS_SYMBOL) : nullptr;
    if (symbol == nullptr) {
        say("EMU_KERNELS: %s", dlerror());
        return;
    }
    add_kernels(*reinterpret_cast<emulated_gpu_kernels_function>(symbol)(), path.c_str());
}

// A fatbin as nvcc embeds it, the fat binary itself, a cubin, or PTX text.
bool is_image(const void *image)
{
    constexpr std::uint32_t kWrapper = 0x466243b1, kFatbin = 0xba55ed50, kElf = 0x464c457f;
    std::uint32_t word;
    std::memcpy(&word, image, sizeof word);
    if (word == kWrapper || word == kFatbin || word == kElf) {
        return true;
    }
    const char *text = static_cast<const char *>(image);
    constexpr std::size_t kHeaderBytes = 4096; // comments come before the version
    const std::string_view start(text, strnlen(text, kHeaderBytes));
    return start.find(".version") != start.npos;
}

template <class Handle> CUresult load(Handle *out, const void *image, Context *context)
{
    if (out == nullptr || image == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!is_image(image)) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    auto module = std::make_shared<Module>();
    module->context = context;
    *out = static_cast<Handle>(modules().add(std::move(module)));
    return CUDA_SUCCESS;
}

CUresult load_in_context(CUmodule *out, const void *image)
{
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    wait_for_device_of(*context);
    return load(out, image, context);
}

// The default on Linux since CUDA 12.2.
bool loads_lazily() { return driver_version() >= 12020; }

// Once in a process: whoever finds no kernel goes on to ask for all that it has, call after call.
void say_missing(const char *name)
{
    static std::atomic<bool> said;
    if (said.exchange(true)) {
        return;
    }
    say("there is no host-compiled kernel %s in EMU_KERNELS=%s; a GPU's machine code and PTX "
        "cannot run here, so compile it for the host too: emulated_gpu/README.md. Other kernels "
        "that are missing are not named",
        name, settings().kernels != nullptr ? settings().kernels : "");
}

// A kernel is loaded when it is asked for, or, as a library's, when it first runs in a context:
// "loading kernels might require context synchronization" (CUDA's guide, Lazy Loading).
template <class Handle>
CUresult get_function(Handle *out, const void *module_handle, const char *name)
{
    const std::shared_ptr<Module> module = modules().find(module_handle);
    if (module == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (out == nullptr || name == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const emulated_gpu_kernel *kernel = find_kernel(name);
    if (kernel == nullptr) {
        say_missing(name);
        return CUDA_ERROR_NOT_FOUND;
    }
    if (loads_lazily() && module->context != nullptr && !module->has(name)) {
        may_synchronise();
    }
    const std::lock_guard lock(module->mutex);
    void *&function = module->functions[name];
    if (function == nullptr) {
        function = functions().add(std::make_shared<Function>(kernel, module->context));
    }
    *out = static_cast<Handle>(function);
    return CUDA_SUCCESS;
}

void forget_functions_of(const Module &module)
{
    for (const auto &[name, function] : module.functions) {
        functions().take(function);
    }
}

CUresult unload(const void *handle)
{
    const std::shared_ptr<Module> module = modules().take(handle);
    if (module == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const std::lock_guard lock(module->mutex);
    forget_functions_of(*module);
    return CUDA_SUCCESS;
}

} // namespace

void load_kernel_libraries()
{
    std::string_view paths = settings().kernels != nullptr ? settings().kernels : "";
    while (!paths.empty()) {
        const auto colon = paths.find(':');
        if (colon != 0) {
            load_kernel_library(std::string(paths.substr(0, colon)));
        }
        paths = colon == paths.npos ? std::string_view{} : paths.substr(colon + 1);
    }
}

void forget_modules_of(const Context *context)
{
    modules().take_if([context](const Module &module) {
        const bool gone = module.context == context;
        if (gone) {
            forget_functions_of(module);
        }
        return gone;
    });
}

std::size_t loaded_modules() { return modules().all().size(); }

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT int emulated_gpu_add_kernels(const emulated_gpu_kernel_table *table)
{
    return add_kernels(*table, "emulated_gpu_add_kernels") ? 0 : -1;
}

EMULATED_GPU_EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    EMULATED_UNSAFE_CALL(cuModuleLoadData);
    return load_in_context(out, image);
}

EMULATED_GPU_EXPORT CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned,
                                                CUjit_option *, void **)
{
    EMULATED_UNSAFE_CALL(cuModuleLoadDataEx);
    return load_in_context(out, image);
}

EMULATED_GPU_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    EMULATED_UNSAFE_CALL(cuModuleLoadFatBinary);
    return load_in_context(out, image);
}

EMULATED_GPU_EXPORT CUresult cuModuleUnload(CUmodule module)
{
    EMULATED_UNSAFE_CALL(cuModuleUnload);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    wait_for_device_of(*context);
    return unload(module);
}

EMULATED_GPU_EXPORT CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    EMULATED_CALL(cuModuleGetLoadingMode);
    *mode = loads_lazily() ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
    EMULATED_CALL(cuModuleGetFunction);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    return get_function(out, module, name);
}

EMULATED_GPU_EXPORT CUresult cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *,
                                               void **, unsigned, CUlibraryOption *, void **,
                                               unsigned)
{
    EMULATED_UNSAFE_CALL(cuLibraryLoadData);
    may_synchronise();
    return load(out, image, nullptr);
}

EMULATED_GPU_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    EMULATED_UNSAFE_CALL(cuLibraryUnload);
    may_synchronise();
    return unload(library);
}

EMULATED_GPU_EXPORT CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
    EMULATED_CALL(cuLibraryGetKernel);
    return get_function(out, library, name);
}

EMULATED_GPU_EXPORT CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library)
{
    EMULATED_CALL(cuLibraryGetModule);
    *out = reinterpret_cast<CUmodule>(library); // one table serves both
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
    EMULATED_CALL(cuKernelGetFunction);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    const std::shared_ptr<Function> function = functions().find(kernel);
    if (function == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (function->is_new_to(context->life)) {
        may_synchronise();
    }
    *out = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}
