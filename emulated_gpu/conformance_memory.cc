// Questions about memory: what is known of an address, and what stays when memory is freed and made
// again.
#include "emulated_gpu/conformance.h"

#include <vector>

namespace hetcoll::conformance {
namespace {

struct Facts {
    unsigned type = 77;
    int device = 77;
    unsigned long long id = 77;
    CUdeviceptr start = 77;
    std::size_t bytes = 77;
    unsigned is_managed = 77, has_legacy_ipc = 77;
    CUcontext context = nullptr;
    CUresult result;
};

Facts facts_of(CUdeviceptr memory)
{
    Facts facts;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_BUFFER_ID,   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,  CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_CONTEXT,     CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
    };
    void *answers[] = {&facts.type,  &facts.device,     &facts.id,      &facts.start,
                       &facts.bytes, &facts.is_managed, &facts.context, &facts.has_legacy_ipc};
    facts.result = cu().cuPointerGetAttributes(std::size(attributes), attributes, answers, memory);
    return facts;
}

const char *type_name(unsigned type)
{
    return type == 0                      ? "none"
           : type == CU_MEMORYTYPE_HOST   ? "host"
           : type == CU_MEMORYTYPE_DEVICE ? "device"
                                          : "another";
}

// Ten questions about one kind of memory.
void ask_about(const std::string &kind, CUdeviceptr memory, std::size_t bytes)
{
    const Facts facts = facts_of(memory);
    unsigned type = 0;
    CUipcMemHandle handle;
    CUdeviceptr start = 0;
    std::size_t size = 0;
    answer(kind + ", cuPointerGetAttributes", facts.result);
    answer(kind + ", cuPointerGetAttribute",
           cu().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
    answer(kind + ", memory type",
           std::string(type_name(facts.type)) + (facts.is_managed == 1 ? ", managed" : ""));
    answer(kind + ", device is known", facts.device == 0);
    answer(kind + ", has a buffer id", facts.id != 0);
    answer(kind + ", range is as allocated", facts.start == memory && facts.bytes == bytes);
    answer(kind + ", has a context", facts.context != nullptr);
    answer(kind + ", legacy IPC capable", facts.has_legacy_ipc == 1);
    answer(kind + ", cuIpcGetMemHandle", cu().cuIpcGetMemHandle(&handle, memory));
    answer(kind + ", cuMemGetAddressRange", cu().cuMemGetAddressRange(&start, &size, memory));
}

void unmap(const VmmMemory &memory)
{
    require(cu().cuMemUnmap(memory.start, memory.bytes), "cuMemUnmap");
    require(cu().cuMemRelease(memory.handle), "cuMemRelease");
}

bool supports(CUdevice_attribute attribute)
{
    int value = 0;
    cu().cuDeviceGetAttribute(&value, attribute, 0);
    return value != 0;
}

void ask_about_vmm()
{
    VmmMemory memory;
    const bool supported = find_vmm(memory);
    answer("VMM is supported", supported);
    if (!supported) {
        return;
    }
    answer("VMM, granularity", std::to_string(memory.bytes));
    require(cu().cuMemAddressReserve(&memory.start, memory.bytes, 0, 0, 0), "cuMemAddressReserve");
    map(memory);
    ask_about("VMM", memory.start, memory.bytes);
    CUmemGenericAllocationHandle again = 0;
    const CUresult retained =
        cu().cuMemRetainAllocationHandle(&again, reinterpret_cast<void *>(memory.start));
    answer("VMM, cuMemRetainAllocationHandle", retained);
    if (retained == CUDA_SUCCESS) {
        cu().cuMemRelease(again);
    }
    int fd = -1;
    answer("VMM, export as file descriptor",
           cu().cuMemExportToShareableHandle(&fd, memory.handle,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    const unsigned long long id = buffer_id(memory.start);
    unmap(memory);
    answer("VMM, an unmapped address has a buffer id", buffer_id(memory.start) != 0);
    map(memory);
    answer("VMM, remap at one address gets a new id", buffer_id(memory.start) != id);
    unmap(memory);
    require(cu().cuMemAddressFree(memory.start, memory.bytes), "cuMemAddressFree");
}

// "start + 1, 2 pieces": a range of VMM memory, by pieces from the start of what was reserved.
std::string pieces(CUresult result, CUdeviceptr start, std::size_t bytes, const VmmMemory &memory)
{
    if (result != CUDA_SUCCESS) {
        return "none";
    }
    const auto first =
        static_cast<long long>(start - memory.start) / static_cast<long long>(memory.bytes);
    return "start + " + std::to_string(first) + ", " + std::to_string(bytes / memory.bytes) +
           " piece(s)";
}

std::string range_by(CUpointer_attribute start_name, CUpointer_attribute bytes_name,
                     CUdeviceptr address, const VmmMemory &memory)
{
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    const CUresult result = cu().cuPointerGetAttribute(&start, start_name, address);
    cu().cuPointerGetAttribute(&bytes, bytes_name, address);
    return pieces(result, start, bytes, memory);
}

CUresult retain(CUdeviceptr address)
{
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result =
        cu().cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(address));
    if (result == CUDA_SUCCESS) {
        cu().cuMemRelease(handle);
    }
    return result;
}

// Four pieces are reserved, the second and the third mapped: what the third is said to be.
void ask_about_pieces()
{
    VmmMemory memory;
    if (!find_vmm(memory)) {
        return;
    }
    require(cu().cuMemAddressReserve(&memory.start, 4 * memory.bytes, 0, 0, 0),
            "cuMemAddressReserve");
    VmmMemory second = memory, third = memory;
    second.start += memory.bytes;
    third.start += 2 * memory.bytes;
    map(second);
    map(third);
    const CUdeviceptr address = third.start + 4096;
    answer("VMM pieces, RANGE", range_by(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                         CU_POINTER_ATTRIBUTE_RANGE_SIZE, address, memory));
    answer("VMM pieces, MAPPING", range_by(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                           CU_POINTER_ATTRIBUTE_MAPPING_SIZE, address, memory));
    CUdeviceptr start = 0;
    std::size_t bytes = 0;
    const CUresult found = cu().cuMemGetAddressRange(&start, &bytes, address);
    answer("VMM pieces, cuMemGetAddressRange", pieces(found, start, bytes, memory));
    answer("VMM pieces, two have different ids", buffer_id(second.start) != buffer_id(address));
    answer("VMM pieces, retain what is not mapped", retain(memory.start));
    CUmemGenericAllocationHandle handle = 0;
    require(cu().cuMemRetainAllocationHandle(&handle, reinterpret_cast<void *>(address)),
            "cuMemRetainAllocationHandle");
    answer("VMM pieces, retain gives the handle of cuMemCreate", handle == third.handle);
    require(cu().cuMemRelease(handle), "cuMemRelease");
    unmap(second);
    unmap(third);
    require(cu().cuMemAddressFree(memory.start, 4 * memory.bytes), "cuMemAddressFree");
    const CUdeviceptr plain = allocate(kLarge);
    answer("retain memory of cuMemAlloc", retain(plain));
    require(cu().cuMemFree(plain), "cuMemFree");
}

void ask_about_pool()
{
    const bool supported = supports(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    answer("pools are supported", supported);
    CUdeviceptr memory = 0, again = 0;
    if (!supported || cu().cuMemAllocAsync(&memory, 1 << 20, nullptr) != CUDA_SUCCESS) {
        return;
    }
    require(cu().cuCtxSynchronize(), "cuCtxSynchronize");
    ask_about("pool", memory, 1 << 20);
    const unsigned long long id = buffer_id(memory);
    require(cu().cuMemFreeAsync(memory, nullptr), "cuMemFreeAsync");
    require(cu().cuCtxSynchronize(), "cuCtxSynchronize");
    require(cu().cuMemAllocAsync(&again, 1 << 20, nullptr), "cuMemAllocAsync");
    answer("pool, re-use gets the same address", again == memory);
    answer("pool, re-use gets a new id", buffer_id(again) != id);
    unsigned on = 1;
    answer("pool, set SYNC_MEMOPS",
           cu().cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, again));
    require(cu().cuMemFreeAsync(again, nullptr), "cuMemFreeAsync");
    require(cu().cuCtxSynchronize(), "cuCtxSynchronize");
}

void ask_about_host_memory()
{
    std::vector<char> heap(1 << 20);
    const auto address = reinterpret_cast<CUdeviceptr>(heap.data());
    ask_about("heap", address, 0);
    require(cu().cuMemHostRegister(heap.data(), heap.size(), 0), "cuMemHostRegister");
    ask_about("registered", address, heap.size());
    answer("registered, register again", cu().cuMemHostRegister(heap.data(), heap.size(), 0));
    require(cu().cuMemHostUnregister(heap.data()), "cuMemHostUnregister");
    answer("registered, unregister twice", cu().cuMemHostUnregister(heap.data()));
    void *pinned = nullptr;
    require(cu().cuMemHostAlloc(&pinned, 8192, 0), "cuMemHostAlloc");
    ask_about("pinned", reinterpret_cast<CUdeviceptr>(pinned), 8192);
    CUdeviceptr mapped = 0;
    require(cu().cuMemHostGetDevicePointer(&mapped, pinned, 0), "cuMemHostGetDevicePointer");
    answer("pinned, device address is the host's", mapped == reinterpret_cast<CUdeviceptr>(pinned));
    require(cu().cuMemFreeHost(pinned), "cuMemFreeHost");
}

} // namespace

bool find_vmm(VmmMemory &memory)
{
    memory.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    memory.properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if (!supports(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
        return false;
    }
    require(cu().cuMemGetAllocationGranularity(&memory.bytes, &memory.properties,
                                               CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            "cuMemGetAllocationGranularity");
    return true;
}

void map(VmmMemory &memory)
{
    CUmemAccessDesc access{};
    access.location = memory.properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    require(cu().cuMemCreate(&memory.handle, memory.bytes, &memory.properties, 0), "cuMemCreate");
    require(cu().cuMemMap(memory.start, memory.bytes, 0, memory.handle, 0), "cuMemMap");
    require(cu().cuMemSetAccess(memory.start, memory.bytes, &access, 1), "cuMemSetAccess");
}

void ask_about_pointers()
{
    ask_about_host_memory();
    const CUdeviceptr small = allocate(1000), other = allocate(5000), large = allocate(kLarge);
    ask_about("small", small, 1000);
    ask_about("large", large, kLarge);
    answer("small, two have different ids", buffer_id(small) != buffer_id(other));
    answer("small, two share 2 MiB", small >> 21 == other >> 21);
    answer("large, inner address has the same id", buffer_id(large) == buffer_id(large + 12345));
    answer("large, inner address knows the start", facts_of(large + 12345).start == large);
    answer("large, the byte behind it has its id", buffer_id(large + kLarge) == buffer_id(large));
    CUdeviceptr managed = 0;
    require(cu().cuMemAllocManaged(&managed, 1 << 20, CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged");
    ask_about("managed", managed, 1 << 20);
    for (const CUdeviceptr memory : {small, other, large, managed}) {
        require(cu().cuMemFree(memory), "cuMemFree");
    }
    ask_about_vmm();
    ask_about_pieces();
    ask_about_pool();
}

void ask_about_reuse()
{
    const CUdeviceptr before = allocate(kLarge);
    const unsigned long long id = buffer_id(before);
    require(cu().cuMemFree(before), "cuMemFree");
    answer("freed, has a buffer id", buffer_id(before) != 0);
    answer("freed, free again", cu().cuMemFree(before));
    const CUdeviceptr after = allocate(kLarge);
    answer("allocated again, same address", after == before);
    answer("allocated again, new id", buffer_id(after) != id);
    unsigned on = 1;
    answer("allocated again, set SYNC_MEMOPS",
           cu().cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, after));
    answer("copy beyond the end", cu().cuMemcpyDtoD(after, after + kLarge - 4, 8));
    answer("fill beyond the end", cu().cuMemsetD8(after + kLarge - 4, 0, 8));
    answer("allocate nothing", [] {
        CUdeviceptr memory = 0;
        return cu().cuMemAlloc(&memory, 0);
    }());
    answer("free null", cu().cuMemFree(0));
    require(cu().cuMemFree(after), "cuMemFree");
}

} // namespace hetcoll::conformance
