#include "device/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

// The name that cuda.h's macros leave: HETCOLL_CALL_NAME(cuMemAlloc) is "cuMemAlloc_v2".
#define HETCOLL_CALL_TEXT(name) #name
#define HETCOLL_CALL_NAME(name) HETCOLL_CALL_TEXT(name)

namespace hetcoll {
namespace {

constexpr const char *kLibrary = "libcuda.so.1";
constexpr const char *kEmulatedMarker = "emulated_gpu_version";

template <class Call> struct Absent;
template <class... Args> struct Absent<CUresult (*)(Args...)> {
    static CUresult call(Args...) noexcept { return CUDA_ERROR_NOT_SUPPORTED; }
};

// Sets `call`, or `missing` to the name that the library lacks.
template <class Call>
void look_up_needed(void *library, const char *name, Call &call, const char *&missing)
{
    call = reinterpret_cast<Call>(dlsym(library, name));
    if (call == nullptr) {
        missing = name;
    }
}

template <class Call> void look_up_optional(void *library, const char *name, Call &call)
{
    call = reinterpret_cast<Call>(dlsym(library, name));
    if (call == nullptr) {
        call = &Absent<Call>::call;
    }
}

// How many objects the loader has loaded so far: when it stands still, nothing new was loaded.
unsigned long long loader_counter()
{
    unsigned long long count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info *info, std::size_t, void *out) {
            *static_cast<unsigned long long *>(out) = info->dlpi_adds;
            return 1; // the counter is the same in every entry
        },
        &count);
    return count;
}

const char *way_out(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_UNJOINED:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
        return ": MPI calls on device buffers cannot be captured into a CUDA "
               "graph, make them "
               "outside of the capture";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        return ": hetcoll was built without kernels for this GPU, configure it with "
               "--with-cuda-arch";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
        return ": hetcoll has no machine code for this GPU, and the driver does not compile what "
               "newer toolkits made: configure hetcoll with --with-cuda-arch for this GPU, or "
               "install a newer driver";
    default: return "";
    }
}

// Until another driver or another build of hetcoll is there.
bool is_for_ever(CUresult result) noexcept
{
    return result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
           result == CUDA_ERROR_JIT_COMPILATION_DISABLED;
}

} // namespace

const Driver *DriverLibrary::get() const noexcept
{
    if (const Driver *const driver = loaded_.load(std::memory_order_acquire); driver != nullptr) {
        return driver;
    }
    // The application may load the library from a folder that our search did not find.
    if (tried_.load(std::memory_order_acquire) &&
        tried_seen_.load(std::memory_order_acquire) == is_loaded_in_process()) {
        return nullptr;
    }
    const std::lock_guard lock(mutex_);
    if (loaded_.load(std::memory_order_relaxed) == nullptr) {
        const bool seen = is_loaded_in_process();
        error_ = load();
        if (error_.ok()) {
            loaded_.store(&driver_, std::memory_order_release);
        }
        tried_seen_.store(seen, std::memory_order_release);
        tried_.store(true, std::memory_order_release);
    }
    return loaded_.load(std::memory_order_relaxed);
}

Status DriverLibrary::load_error() const
{
    const std::lock_guard lock(mutex_);
    return error_.ok() ? Status() : error(error_.code(), "%s", error_.message().c_str());
}

bool DriverLibrary::is_emulated() const noexcept { return get() != nullptr && emulated_; }

Status DriverLibrary::load() const
{
    void *const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return error(Errc::kUnsupported, "the CUDA driver cannot be loaded: %s", dlerror());
    }
    const char *missing = nullptr;
#define HETCOLL_LOOK_UP(name) \
    look_up_needed(library, HETCOLL_CALL_NAME(name), driver_.name, missing);
    HETCOLL_NEEDED_DRIVER_CALLS(HETCOLL_LOOK_UP)
#undef HETCOLL_LOOK_UP
#define HETCOLL_LOOK_UP(name) look_up_optional(library, HETCOLL_CALL_NAME(name), driver_.name);
    HETCOLL_OPTIONAL_DRIVER_CALLS(HETCOLL_LOOK_UP)
#undef HETCOLL_LOOK_UP
    if (missing != nullptr) {
        return error(Errc::kUnsupported,
                     "the CUDA driver (%s) lacks %s, which hetcoll needs: install "
                     "a newer driver",
                     kLibrary, missing);
    }
    emulated_ = dlsym(library, kEmulatedMarker) != nullptr;
    return {};
}

bool DriverLibrary::is_loaded_in_process() const noexcept
{
    if (seen_.load(std::memory_order_relaxed)) {
        return true;
    }
    const unsigned long long counter = loader_counter();
    if (counter == looked_at_.load(std::memory_order_relaxed)) {
        return false;
    }
    void *const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
    if (library != nullptr) {
        seen_.store(true,
                    std::memory_order_relaxed); // not closed: it must stay
        return true;
    }
    looked_at_.store(counter, std::memory_order_relaxed);
    return false;
}

bool DriverLibrary::may_have_gpu() noexcept
{
    for (const char *const file :
         {"/dev/nvidiactl", "/dev/dxg" /* WSL */, "/dev/nvmap" /* Tegra */}) {
        if (access(file, F_OK) == 0) {
            return true;
        }
    }
    void *const library = dlopen(kLibrary, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
        return false;
    }
    const bool is_driver = dlsym(library, "cuInit") != nullptr;
    dlclose(library);
    return is_driver;
}

std::string cuda_release(int version)
{
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status driver_status(const Driver &driver, CUresult result, const char *call, const char *doing)
{
    if (result == CUDA_SUCCESS) {
        return {};
    }
    const char *name = nullptr;
    if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
        name = "unknown error";
    }
    const Errc code = result == CUDA_ERROR_OUT_OF_MEMORY ? Errc::kNoMemory
                      : is_for_ever(result)              ? Errc::kUnsupported
                                                         : Errc::kDriver;
    return error(code, "%s failed: %s (%d), while %s%s", call, name, static_cast<int>(result),
                 doing, way_out(result));
}

bool is_torn_down(CUresult result) noexcept
{
    return result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           result == CUDA_ERROR_INVALID_CONTEXT;
}

} // namespace hetcoll
