// Kernels of programs that nvcc compiled. Its host code registers each with its machine code, which
// no host can run, and its mangled name. The driver runs a kernel of that name that was compiled
// for the host too (EMU_KERNELS); a launch of any other is cudaErrorNoKernelImageForDevice.
#include "emulated_gpu/runtime.h"

#include <vector_types.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <vector>

namespace hetcoll::emulated_runtime {
namespace {

// The structure that nvcc embeds for one source file.
struct Binary {
    const void *image;
    CUlibrary library = nullptr; // loaded with the first kernel that is launched
};

struct Kernel {
    Binary *binary;
    const char *name;
    CUresult found = CUDA_ERROR_NOT_READY; // then nobody has looked
    CUkernel kernel = nullptr;
};

struct Registry {
    std::mutex mutex;
    std::map<const void *, Kernel> by_stub; // by the address of nvcc's host function
};
Registry &registry()
{
    static Registry &the = *new Registry; // programs register and launch in constructors too
    return the;
}

struct Configuration {
    dim3 grid, block;
    std::size_t shared_bytes;
    CUstream stream;
};
std::vector<Configuration> &configurations() // of launches that have begun
{
    static thread_local std::vector<Configuration> the;
    return the;
}

Binary *binary_of(void **handle) { return reinterpret_cast<Binary *>(handle); }

// Requires the lock. The driver says on stderr which kernel it lacks, the first time.
CUresult find(Kernel &kernel)
{
    if (kernel.found != CUDA_ERROR_NOT_READY) {
        return kernel.found;
    }
    Binary &binary = *kernel.binary;
    kernel.found = CUDA_SUCCESS;
    if (binary.library == nullptr) {
        kernel.found = cuLibraryLoadData(&binary.library, binary.image, nullptr, nullptr, 0,
                                         nullptr, nullptr, 0);
    }
    if (kernel.found == CUDA_SUCCESS) {
        kernel.found = cuLibraryGetKernel(&kernel.kernel, binary.library, kernel.name);
    }
    if (kernel.found == CUDA_ERROR_NOT_FOUND) {
        kernel.found = CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return kernel.found;
}

CUresult find(const void *stub, CUkernel &kernel)
{
    const std::lock_guard lock(registry().mutex);
    const auto known = registry().by_stub.find(stub);
    if (known == registry().by_stub.end()) {
        return static_cast<CUresult>(cudaErrorInvalidDeviceFunction);
    }
    const CUresult result = find(known->second);
    kernel = known->second.kernel;
    return result;
}

cudaError_t launch(const void *stub, dim3 grid, dim3 block, void **arguments, std::size_t shared,
                   CUstream stream)
{
    return in_context([&] {
        CUkernel kernel = nullptr;
        const CUresult result = find(stub, kernel);
        return result != CUDA_SUCCESS
                   ? result
                   : cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z,
                                    block.x, block.y, block.z, static_cast<unsigned>(shared),
                                    stream, arguments, nullptr);
    });
}

} // namespace
} // namespace hetcoll::emulated_runtime

using namespace hetcoll::emulated_runtime;

EMULATED_RUNTIME_EXPORT cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block,
                                                     void **arguments, size_t shared_bytes,
                                                     cudaStream_t stream)
{
    return launch(stub, grid, block, arguments, shared_bytes, stream);
}

// The functions that nvcc's host code calls, as crt/host_runtime.h of the toolkit declares it.

EMULATED_RUNTIME_EXPORT void **__cudaRegisterFatBinary(void *image)
{
    return reinterpret_cast<void **>(new Binary{image});
}

EMULATED_RUNTIME_EXPORT void __cudaRegisterFatBinaryEnd(void **) {}

EMULATED_RUNTIME_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    const std::lock_guard lock(registry().mutex);
    std::erase_if(registry().by_stub,
                  [handle](const auto &entry) { return entry.second.binary == binary_of(handle); });
    if (binary_of(handle)->library != nullptr) {
        static_cast<void>(cuLibraryUnload(binary_of(handle)->library));
    }
    delete binary_of(handle);
}

EMULATED_RUNTIME_EXPORT void __cudaRegisterFunction(void **handle, const char *stub, char *,
                                                    const char *name, int, uint3 *, uint3 *, dim3 *,
                                                    dim3 *, int *)
{
    const std::lock_guard lock(registry().mutex);
    registry().by_stub[stub] = Kernel{binary_of(handle), name};
}

// Variables in device memory are machine code's: copies to and from them are not supported.
EMULATED_RUNTIME_EXPORT void __cudaRegisterVar(void **, char *, char *, const char *, int,
                                               std::size_t, int, int)
{
}

EMULATED_RUNTIME_EXPORT void __cudaRegisterManagedVar(void **, void **, char *, const char *name,
                                                      int, std::size_t, int, int)
{
    std::fprintf(stderr,
                 "[emulated GPU] there is no __managed__ variable %s: use cudaMallocManaged\n",
                 name);
}

EMULATED_RUNTIME_EXPORT char __cudaInitModule(void **) { return 0; }

EMULATED_RUNTIME_EXPORT unsigned
__cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, CUstream_st *stream)
{
    configurations().push_back({grid, block, shared_bytes, stream});
    return 0;
}

EMULATED_RUNTIME_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
                                                               std::size_t *shared_bytes,
                                                               void *stream)
{
    if (configurations().empty()) {
        return answer(cudaErrorMissingConfiguration);
    }
    const Configuration begun = configurations().back();
    configurations().pop_back();
    *grid = begun.grid;
    *block = begun.block;
    *shared_bytes = begun.shared_bytes;
    *static_cast<CUstream *>(stream) = begun.stream;
    return cudaSuccess;
}

// The handle is the host function itself: only __cudaLaunchKernel gets it.
EMULATED_RUNTIME_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(stub));
    return cudaSuccess;
}

EMULATED_RUNTIME_EXPORT cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                       void **arguments, std::size_t shared_bytes,
                                                       cudaStream_t stream)
{
    return launch(kernel, grid, block, arguments, shared_bytes, stream);
}
