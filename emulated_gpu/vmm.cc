// Virtual memory management: address ranges, physical memory and mappings apart, and handles that
// other processes import as file descriptors.
#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/faults.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/leaks.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/node.h"
#include "emulated_gpu/settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_set>

// After all includes.
#include "emulated_gpu/patchable.h"

namespace hetcoll::emulated_gpu {
namespace {

struct Physical {
    Block *block;
    CUmemAllocationProp properties;
    int references; // the program's and the mappings'
};

// Guarded by the memory lock.
struct Vmm {
    std::unordered_set<Physical *> physical;
    std::map<Address, Physical *> mapped;        // by start of the mapping
    std::map<Address, std::size_t> reservations; // start -> bytes
};
Vmm &vmm()
{
    static Vmm &the = *new Vmm;
    return the;
}

// Null for a handle that does not exist. Requires the lock.
Physical *find_physical(CUmemGenericAllocationHandle handle)
{
    auto *physical = reinterpret_cast<Physical *>(handle);
    return vmm().physical.contains(physical) ? physical : nullptr;
}

CUmemGenericAllocationHandle add_physical(Block *block, const CUmemAllocationProp &properties)
{
    auto *physical = new Physical{block, properties, 1};
    vmm().physical.insert(physical);
    return reinterpret_cast<CUmemGenericAllocationHandle>(physical);
}

bool is_last_reference(CUmemGenericAllocationHandle handle)
{
    const std::shared_lock lock(memory_mutex());
    const Physical *physical = find_physical(handle);
    return physical != nullptr && physical->references == 1;
}

void drop_physical(Physical *physical)
{
    if (--physical->references == 0) {
        vmm().physical.erase(physical);
        drop_block(physical->block);
        delete physical;
    }
}

bool is_reserved(Address start, std::size_t bytes)
{
    const auto next = vmm().reservations.upper_bound(start);
    if (next == vmm().reservations.begin()) {
        return false;
    }
    const auto &[first, size] = *std::prev(next);
    return start + bytes <= first + size;
}

// Calls visit(allocation) for the mappings that make up a range exactly.
template <class Visit> CUresult for_each_mapping(Address start, std::size_t bytes, Visit visit)
{
    for (Address at = start; at < start + bytes;) {
        const auto found = allocations().find(at);
        if (found == allocations().end() || found->second->kind != Kind::kVmm) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        at += found->second->bytes;
        EMULATED_TRY(visit(found->second));
    }
    return CUDA_SUCCESS;
}

CUresult unmap(Allocation *allocation)
{
    const Address start = allocation->start;
    unmap_range(start, allocation->bytes);
    remove_allocation(allocation);
    const auto mapping = vmm().mapped.find(start);
    drop_physical(mapping->second);
    vmm().mapped.erase(mapping);
    return CUDA_SUCCESS;
}

// Access always means to read and write; a mapping that nobody may access any more is closed.
CUresult set_access(Allocation *mapping, const CUmemAccessDesc &description)
{
    if (description.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const int device = description.location.id;
    EMULATED_TRY(check_device(device));
    if (!peers_reach(settings().physical_device[device], mapping->block->physical_device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const unsigned before = mapping->open_to, bit = 1u << device;
    const bool open = description.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    mapping->open_to = open ? before | bit : before & ~bit;
    if (mapping->open_to == 0) {
        unmap_range(mapping->start, mapping->bytes);
        return CUDA_SUCCESS;
    }
    return before != 0 || map_device(mapping->start, mapping->bytes, mapping->block->fd, 0)
               ? CUDA_SUCCESS
               : CUDA_ERROR_MAP_FAILED;
}

CUresult check_vmm() { return settings().vmm ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED; }

} // namespace

Reservation reservation_of(Address address)
{
    const auto &[start, bytes] = *std::prev(vmm().reservations.upper_bound(address));
    return {start, bytes};
}

std::string leaked_vmm()
{
    const std::shared_lock lock(memory_mutex());
    const auto leaked = [](std::size_t left, std::size_t refused, const char *what) {
        return left > refused ? std::to_string(left - refused) + " VMM " + what + "(s)\n" : "";
    };
    return leaked(vmm().physical.size(),
                  refused_calls("cuMemRelease") + refused_calls("cuMemUnmap"),
                  "allocation handle") +
           leaked(vmm().reservations.size(), refused_calls("cuMemAddressFree"),
                  "address reservation");
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuMemGetAllocationGranularity(size_t *bytes,
                                                           const CUmemAllocationProp *properties,
                                                           CUmemAllocationGranularity_flags)
{
    EMULATED_CALL(cuMemGetAllocationGranularity);
    EMULATED_TRY(check_vmm());
    if (bytes == nullptr || properties == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *bytes = kGranule;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *start, size_t bytes, size_t,
                                                 CUdeviceptr, unsigned long long)
{
    EMULATED_CALL(cuMemAddressReserve);
    may_synchronise();
    EMULATED_TRY(check_vmm());
    if (start == nullptr || bytes == 0 || bytes % kGranule != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::unique_lock lock(memory_mutex());
    *start = take_range(bytes);
    if (*start == 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    vmm().reservations[*start] = bytes;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemAddressFree(CUdeviceptr start, size_t bytes)
{
    EMULATED_CALL(cuMemAddressFree);
    may_synchronise();
    const std::unique_lock lock(memory_mutex());
    const auto reservation = vmm().reservations.find(start);
    if (reservation == vmm().reservations.end() || reservation->second != bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    vmm().reservations.erase(reservation);
    give_range(start, bytes);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                                         const CUmemAllocationProp *properties, unsigned long long)
{
    EMULATED_CALL(cuMemCreate);
    may_synchronise();
    EMULATED_TRY(check_vmm());
    if (handle == nullptr || bytes == 0 || bytes % kGranule != 0 ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    constexpr unsigned kShareable = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if ((static_cast<unsigned>(properties->requestedHandleTypes) & ~kShareable) != 0) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    EMULATED_TRY(check_device(properties->location.id));
    const std::unique_lock lock(memory_mutex());
    CUresult result = CUDA_SUCCESS;
    Block *block = new_block(bytes, properties->location.id, result);
    if (block != nullptr) {
        block->handle_types = properties->requestedHandleTypes;
        *handle = add_physical(block, *properties);
    }
    return result;
}

EMULATED_GPU_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    EMULATED_CALL(cuMemRelease);
    if (is_last_reference(handle)) { // else nothing is freed
        may_synchronise();
    }
    const std::unique_lock lock(memory_mutex());
    Physical *physical = find_physical(handle);
    if (physical == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    drop_physical(physical);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemMap(CUdeviceptr start, size_t bytes, size_t offset,
                                      CUmemGenericAllocationHandle handle, unsigned long long)
{
    EMULATED_CALL(cuMemMap);
    may_synchronise();
    const std::unique_lock lock(memory_mutex());
    Physical *physical = find_physical(handle);
    if (physical == nullptr || offset != 0 || bytes == 0 || bytes % kGranule != 0 ||
        bytes > physical->block->bytes || start % kGranule != 0 || !is_reserved(start, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto next = allocations().lower_bound(start);
    if (next != allocations().end() && next->first < start + bytes) {
        return CUDA_ERROR_INVALID_VALUE; // something is mapped there
    }
    ++physical->references;
    vmm().mapped[start] = physical; // unreachable until cuMemSetAccess
    add_allocation(start, bytes, Kind::kVmm, physical->block->device, nullptr, physical->block);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemSetAccess(CUdeviceptr start, size_t bytes,
                                            const CUmemAccessDesc *description, size_t count)
{
    EMULATED_CALL(cuMemSetAccess);
    may_synchronise();
    if (description == nullptr || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::unique_lock lock(memory_mutex());
    return for_each_mapping(start, bytes, [&](Allocation *mapping) {
        for (size_t i = 0; i < count; ++i) {
            EMULATED_TRY(set_access(mapping, description[i]));
        }
        return CUDA_SUCCESS;
    });
}

EMULATED_GPU_EXPORT CUresult cuMemGetAccess(unsigned long long *flags,
                                            const CUmemLocation *location, CUdeviceptr address)
{
    EMULATED_CALL(cuMemGetAccess);
    const std::shared_lock lock(memory_mutex());
    const Allocation *found = find_allocation(address);
    if (found == nullptr || found->kind != Kind::kVmm) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool open = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
                      location->id < kMaxDevices && (found->open_to >> location->id & 1u) != 0;
    *flags = open ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemUnmap(CUdeviceptr start, size_t bytes)
{
    EMULATED_UNSAFE_CALL(cuMemUnmap);
    for (int device = 0; device < settings().device_count; ++device) {
        may_synchronise(device);
    }
    const std::unique_lock lock(memory_mutex());
    return for_each_mapping(start, bytes, unmap);
}

EMULATED_GPU_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle,
                                                         void *pointer)
{
    EMULATED_CALL(cuMemRetainAllocationHandle);
    const std::unique_lock lock(memory_mutex());
    const Allocation *found = find_allocation(reinterpret_cast<Address>(pointer));
    if (found == nullptr || found->kind != Kind::kVmm) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Physical *physical = vmm().mapped[found->start];
    ++physical->references;
    *handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
    EMULATED_CALL(cuMemGetAllocationPropertiesFromHandle);
    const std::shared_lock lock(memory_mutex());
    const Physical *physical = find_physical(handle);
    if (physical == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *properties = physical->properties;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemExportToShareableHandle(void *out,
                                                          CUmemGenericAllocationHandle handle,
                                                          CUmemAllocationHandleType type,
                                                          unsigned long long)
{
    EMULATED_CALL(cuMemExportToShareableHandle);
    const std::unique_lock lock(memory_mutex());
    const Physical *physical = find_physical(handle);
    if (physical == nullptr || type != physical->properties.requestedHandleTypes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (export_slot_of(*physical->block) < 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const int fd = fcntl(physical->block->fd, F_DUPFD_CLOEXEC, 0);
    *static_cast<int *>(out) = fd;
    return fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

EMULATED_GPU_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                            void *os_handle,
                                                            CUmemAllocationHandleType type)
{
    EMULATED_CALL(cuMemImportFromShareableHandle);
    may_synchronise();
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
    struct stat file;
    int physical = -1;
    std::uint64_t id = 0;
    if (fstat(fd, &file) != 0 || !find_block(fd, id, physical)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::unique_lock lock(memory_mutex());
    const int slot = find_shared_export(id);
    if (slot >= 0 && !open_shared_export(slot, id)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto *block = new Block;
    block->export_slot = slot;
    block->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    block->bytes = static_cast<std::size_t>(file.st_size);
    block->id = new_node_id();
    block->imported = true;
    block->handle_types = type;
    block->physical_device = physical;
    block->device = ordinal_of(physical, 0);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = type;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = block->device;
    *handle = add_physical(block, properties);
    return CUDA_SUCCESS;
}
