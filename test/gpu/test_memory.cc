#include "test_memory.h"

#include <dlfcn.h>

namespace hetcoll::test {
namespace {

// By the name that cuda.h's macros leave.
#define HETCOLL_TEST_CALL_TEXT(name) #name
#define HETCOLL_TEST_CALL(name) find<decltype(&::name)>(HETCOLL_TEST_CALL_TEXT(name))

// A function of the driver that the Gpu has opened; null if it is too old to have the call.
template <class Function> Function find(const char *name)
{
    static void *const driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(driver, name));
}

CUresult attribute(const Gpu &gpu, CUdevice_attribute which, int *value)
{
    CUdevice device = 0;
    *value = 0;
    const CUresult result = gpu.driver().cuDeviceGet(&device, gpu.ordinal());
    return result == CUDA_SUCCESS ? gpu.driver().cuDeviceGetAttribute(value, which, device)
                                  : result;
}

bool supports(const Gpu &gpu, CUdevice_attribute which)
{
    int value = 0;
    return attribute(gpu, which, &value) == CUDA_SUCCESS && value != 0;
}

} // namespace

const char *type_name(MemoryType type) noexcept
{
    switch (type) {
    case MemoryType::kPlain: return "plain";
    case MemoryType::kVmm: return "vmm";
    case MemoryType::kVmmWithoutFd: return "vmm_without_fd";
    case MemoryType::kPool: return "pool";
    case MemoryType::kManaged: return "managed";
    }
    return "?";
}

bool has(const Gpu &gpu, MemoryType type)
{
    const bool vmm = supports(gpu, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
    switch (type) {
    case MemoryType::kPlain: return true;
    case MemoryType::kVmm:
        return vmm &&
               supports(gpu, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    case MemoryType::kVmmWithoutFd: return vmm;
    case MemoryType::kPool: return supports(gpu, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
    case MemoryType::kManaged: return supports(gpu, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
    }
    return false;
}

Result<std::unique_ptr<TestMemory>> TestMemory::allocate(const Gpu &gpu, MemoryType type,
                                                         std::size_t bytes)
{
    std::unique_ptr<TestMemory> memory(new TestMemory(gpu, type));
    Status status = memory->make(bytes);
    if (!status.ok()) {
        return status;
    }
    return memory;
}

Status TestMemory::make(std::size_t bytes)
{
    const Driver &driver = gpu_.driver();
    const char *doing = "allocating memory for a test";
    switch (type_) {
    case MemoryType::kVmm:
    case MemoryType::kVmmWithoutFd: return make_vmm(bytes);
    case MemoryType::kManaged:
        return driver_status(driver,
                             driver.cuMemAllocManaged(&address_, bytes, CU_MEM_ATTACH_GLOBAL),
                             "cuMemAllocManaged", doing);
    case MemoryType::kPool: {
        const auto allocate_async = HETCOLL_TEST_CALL(cuMemAllocAsync);
        const CUresult result = allocate_async == nullptr
                                    ? CUDA_ERROR_NOT_SUPPORTED
                                    : allocate_async(&address_, bytes, nullptr);
        return driver_status(driver, result, "cuMemAllocAsync", doing);
    }
    case MemoryType::kPlain: break;
    }
    return driver_status(driver, driver.cuMemAlloc(&address_, bytes), "cuMemAlloc", doing);
}

Status TestMemory::make_vmm(std::size_t bytes)
{
    const Driver &driver = gpu_.driver();
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = gpu_.ordinal();
    properties.requestedHandleTypes = type_ == MemoryType::kVmm
                                          ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                          : CU_MEM_HANDLE_TYPE_NONE;
    std::size_t granularity = 0;
    Status status = driver_status(driver,
                                  driver.cuMemGetAllocationGranularity(
                                      &granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                                  "cuMemGetAllocationGranularity", "allocating memory for a test");
    const auto create = HETCOLL_TEST_CALL(cuMemCreate);
    if (!status.ok() || create == nullptr) {
        return status.ok() ? error(Errc::kUnsupported, "the driver has no cuMemCreate")
                           : std::move(status);
    }
    mapped_bytes_ = (bytes + granularity - 1) / granularity * granularity;
    CUmemGenericAllocationHandle handle = 0;
    CUresult result = create(&handle, mapped_bytes_, &properties, 0);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver, result, "cuMemCreate", "allocating memory for a test");
    }
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUdeviceptr address = 0;
    result = driver.cuMemAddressReserve(&address, mapped_bytes_, 0, 0, 0);
    if (result == CUDA_SUCCESS) {
        result = driver.cuMemMap(address, mapped_bytes_, 0, handle, 0);
    }
    driver.cuMemRelease(handle); // the mapping keeps the memory
    if (result == CUDA_SUCCESS) {
        address_ = address;
        result = driver.cuMemSetAccess(address, mapped_bytes_, &access, 1);
    }
    return driver_status(driver, result, "cuMemMap", "allocating memory for a test");
}

TestMemory::~TestMemory()
{
    const Driver &driver = gpu_.driver();
    if (address_ == 0) {
        return;
    }
    switch (type_) {
    case MemoryType::kVmm:
    case MemoryType::kVmmWithoutFd:
        driver.cuMemUnmap(address_, mapped_bytes_);
        driver.cuMemAddressFree(address_, mapped_bytes_);
        return;
    case MemoryType::kPool: HETCOLL_TEST_CALL(cuMemFreeAsync)(address_, nullptr); return;
    default: driver.cuMemFree(address_); return;
    }
}

Status TestMemory::write(const std::vector<unsigned char> &content) const
{
    const Driver &driver = gpu_.driver();
    Status status =
        driver_status(driver, driver.cuMemcpyHtoD(address_, content.data(), content.size()),
                      "cuMemcpyHtoD", "filling memory for a test");
    if (status.ok()) { // managed memory: the host must not look before the GPU is done
        status = driver_status(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize",
                               "filling memory for a test");
    }
    return status;
}

Result<std::vector<unsigned char>> TestMemory::read(std::size_t bytes) const
{
    const Driver &driver = gpu_.driver();
    std::vector<unsigned char> content(bytes);
    Status status = driver_status(driver, driver.cuMemcpyDtoH(content.data(), address_, bytes),
                                  "cuMemcpyDtoH", "reading memory of a test");
    if (!status.ok()) {
        return status;
    }
    return content;
}

} // namespace hetcoll::test
