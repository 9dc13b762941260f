// Single questions about ways to other processes and other devices, which one device can answer in
// part.
#include "test/gpu/latency_probe.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace hetcoll::probe {
namespace {

constexpr std::size_t kBytes = 2 << 20;

// CUmulticastObjectProp, which cuda.h has since CUDA 12.1.
struct MulticastProperties {
    unsigned devices = 1;
    std::size_t bytes = kBytes;
    unsigned long long handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    unsigned long long flags = 0;
};

void ask_about_multicast()
{
    constexpr char kCreate[] = "cuMulticastCreate for one device";
    using Create = CUresult(CUmemGenericAllocationHandle *, const MulticastProperties *);
    using AddDevice = CUresult(CUmemGenericAllocationHandle, CUdevice);
    auto *const create = reinterpret_cast<Create *>(dlsym(RTLD_DEFAULT, "cuMulticastCreate"));
    auto *const add = reinterpret_cast<AddDevice *>(dlsym(RTLD_DEFAULT, "cuMulticastAddDevice"));
    if (create == nullptr || add == nullptr) {
        tell_missing(kCreate);
        return;
    }
    CUmemGenericAllocationHandle object = 0;
    const MulticastProperties properties;
    const CUresult created = create(&object, &properties);
    tell_error(kCreate, created);
    if (created == CUDA_SUCCESS) {
        answer("cuMulticastAddDevice", add(object, 0));
        answer("cuMemRelease of the object", cuMemRelease(object));
    }
}

void ask_about_fabric_handles()
{
    constexpr int kFabric = 8; // CU_MEM_HANDLE_TYPE_FABRIC, in cuda.h since CUDA 12.3
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = static_cast<CUmemAllocationHandleType>(kFabric);
    CUmemGenericAllocationHandle handle = 0;
    answer("cuMemCreate with a fabric handle", cuMemCreate(&handle, kBytes, &properties, 0));
}

void ask_about_dma_buf()
{
    int file = -1;
    const CUresult exported = cuMemGetHandleForAddressRange(&file, allocate(kBytes), kBytes,
                                                            CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    answer("a dma-buf of cuMemAlloc's memory", exported);
    if (exported != CUDA_SUCCESS) {
        return;
    }
    void *mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    answer("mmap of the dma-buf", "%s", mapped == MAP_FAILED ? std::strerror(errno) : "yes");
    close(file);
}

void ask_about_ipc_of_one_process()
{
    CUipcMemHandle handle{};
    CUcontext other = nullptr;
    CUdeviceptr opened = 0;
    const CUresult exported = cuIpcGetMemHandle(&handle, allocate(kBytes));
    answer("cuIpcGetMemHandle", exported);
    if (exported != CUDA_SUCCESS) {
        return;
    }
    must(cuCtxCreate_v2(&other, 0, 0), "cuCtxCreate");
    answer("cuIpcOpenMemHandle in another context of the exporter",
           cuIpcOpenMemHandle(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

} // namespace

void ask_single_questions()
{
    use_primary_context();
    ask_about_multicast();
    ask_about_fabric_handles();
    ask_about_dma_buf();
    ask_about_ipc_of_one_process();
}

} // namespace hetcoll::probe
