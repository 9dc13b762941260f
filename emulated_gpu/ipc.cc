#include "emulated_gpu/ipc.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/events.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/hostility.h"
#include "emulated_gpu/limits.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/node.h"
#include "emulated_gpu/settings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace hetcoll::emulated_gpu {
namespace {

// The content of the 64 bytes of a CUipcMemHandle.
struct MemoryHandle {
    std::uint64_t tag, block_id, offset, bytes, block_bytes;
    Address exporter_start; // where the exporter sees the block
    int process, fd;
    std::uint16_t physical_device, slot;
    std::uint32_t unused; // no padding: of one allocation all handles are the same
};
static_assert(sizeof(MemoryHandle) <= sizeof(CUipcMemHandle));
static_assert(kMaxSharedExports <= UINT16_MAX);

struct EventHandle {
    std::uint64_t tag, id;
    int slot, process;
};
static_assert(sizeof(EventHandle) <= sizeof(CUipcEventHandle));

constexpr std::uint64_t kMemoryTag = 0x454d554d454d3032u, kEventTag = 0x454d554556543032u;

// A block of another process, as mapped here. Opened again, it is the same mapping.
struct Import {
    Block *block;
    Address exporter_start;
    int opened;
    const Context *context;
};
using ImportKey = std::pair<int, std::uint64_t>; // exporter, its block's id

// Guarded by the memory lock.
std::map<ImportKey, Import> &imports()
{
    static auto &the = *new std::map<ImportKey, Import>;
    return the;
}

// The exporter's memfd, or -1. It may have closed it, and have another file under that number.
int open_block(const MemoryHandle &handle, CUresult &result)
{
    char path[64], name[128], expected[80];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        result = CUDA_ERROR_MAP_FAILED;
        return -1;
    }
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, name, sizeof name - 1);
    name[length < 0 ? 0 : length] = '\0';
    const int expected_length =
        std::snprintf(expected, sizeof expected, "/memfd:emulated-gpu-block-%llu ",
                      static_cast<unsigned long long>(handle.block_id));
    if (std::strncmp(name, expected, static_cast<std::size_t>(expected_length)) != 0) {
        close(fd);
        result = CUDA_ERROR_INVALID_VALUE;
        return -1;
    }
    return fd;
}

// A mapping of this exporter that the block would overlap there: it has freed that memory and uses
// the address again. Some drivers refuse the new one until the old one is closed, others map both.
bool overlaps_older_import(const MemoryHandle &handle)
{
    for (const auto &[key, import] : imports()) {
        if (key.first == handle.process &&
            handle.exporter_start < import.exporter_start + import.block->bytes &&
            import.exporter_start < handle.exporter_start + handle.block_bytes) {
            return true;
        }
    }
    return false;
}

// "CUipcMemHandles from each CUdevice in a given process may only be opened by one CUcontext per
// CUdevice per other process" (cuda.h).
bool is_opened_by_another(const MemoryHandle &handle, const Context &context)
{
    for (const auto &[key, import] : imports()) {
        if (key.first == handle.process &&
            import.block->physical_device == handle.physical_device &&
            import.context->device == context.device && import.context != &context) {
            return true;
        }
    }
    return false;
}

Block *map_import(const MemoryHandle &handle, int device, CUresult &result)
{
    const int fd = open_block(handle, result);
    if (fd < 0) {
        return nullptr;
    }
    auto *block = new Block;
    block->id = new_node_id();
    block->bytes = handle.block_bytes;
    block->device = device;
    block->physical_device = handle.physical_device;
    block->imported = true;
    block->range_bytes = block->bytes;
    block->start = take_range(block->bytes);
    const bool mapped = block->start != 0 && map_device(block->start, block->bytes, fd, 0);
    close(fd);
    if (!mapped || !open_shared_export(handle.slot, handle.block_id)) {
        drop_block(block);
        result = CUDA_ERROR_MAP_FAILED;
        return nullptr;
    }
    block->export_slot = handle.slot;
    return block;
}

// The exporter may have freed what was opened here before, and put something of another size in its
// place. The whole block is mapped, so all overlapping ranges become one. Requires the memory lock.
void show_import(Address start, std::size_t bytes, int device, Context *context, Block *block)
{
    Address first = start, end = start + bytes;
    std::vector<Allocation *> overlapped;
    for (auto &[address, allocation] : allocations()) {
        if (allocation->block == block && address < end && start < address + allocation->bytes) {
            first = std::min(first, address);
            end = std::max<Address>(end, address + allocation->bytes);
            overlapped.push_back(allocation);
        }
    }
    if (overlapped.size() == 1 && overlapped[0]->start == first &&
        overlapped[0]->bytes == end - first) {
        return;
    }
    for (Allocation *old : overlapped) {
        remove_allocation(old);
    }
    add_allocation(first, end - first, Kind::kImported, device, context, block);
}

// Requires the memory lock.
CUresult open_memory(const MemoryHandle &handle, Context *context, CUdeviceptr *out)
{
    const int device = ordinal_of(handle.physical_device, context->device);
    const ImportKey key{handle.process, handle.block_id};
    auto import = imports().find(key);
    if (import == imports().end()) {
        if (is_hostile(Hostility::kLimits) && overlaps_older_import(handle)) {
            return CUDA_ERROR_ALREADY_MAPPED;
        }
        CUresult result = CUDA_SUCCESS;
        Block *block = map_import(handle, device, result);
        if (block == nullptr) {
            return result;
        }
        import = imports().emplace(key, Import{block, handle.exporter_start, 0, context}).first;
    }
    ++import->second.opened;
    Block *block = import->second.block;
    const Address start = block->start + handle.offset;
    show_import(start, handle.bytes, device, context, block);
    *out = start;
    return CUDA_SUCCESS;
}

// Requires the memory lock.
void unmap_import(std::map<ImportKey, Import>::iterator import)
{
    Block *block = import->second.block;
    for (auto next = allocations().lower_bound(block->start);
         next != allocations().end() && next->first < block->start + block->bytes;) {
        Allocation *allocation = next->second;
        ++next;
        remove_allocation(allocation);
    }
    imports().erase(import);
    drop_block(block);
}

} // namespace

void close_imports_of(const Context *context)
{
    const std::unique_lock lock(memory_mutex());
    for (auto import = imports().begin(); import != imports().end();) {
        const auto closing = import++;
        if (closing->second.context == context) {
            unmap_import(closing);
        }
    }
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
    EMULATED_CALL(cuIpcGetMemHandle);
    const std::unique_lock lock(memory_mutex());
    const Allocation *found = find_allocation(address);
    if (out == nullptr || found == nullptr || found->kind != Kind::kDevice) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Block *block = found->block;
    if (export_slot_of(*block) < 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const MemoryHandle handle{
        .tag = kMemoryTag ^ node_tag(),
        .block_id = block->id,
        .offset = found->start - block->start,
        .bytes = found->bytes,
        .block_bytes = block->bytes,
        .exporter_start = block->start,
        .process = getpid(),
        .fd = block->fd,
        .physical_device = static_cast<std::uint16_t>(settings().physical_device[block->device]),
        .slot = static_cast<std::uint16_t>(block->export_slot),
        .unused = 0,
    };
    std::memset(out, 0, sizeof *out);
    std::memcpy(out, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle bytes,
                                                unsigned flags)
{
    EMULATED_UNSAFE_CALL(cuIpcOpenMemHandle);
    may_synchronise();
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    MemoryHandle handle;
    std::memcpy(&handle, &bytes, sizeof handle);
    if (out == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
        handle.tag != (kMemoryTag ^ node_tag())) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (handle.process == getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT; // not in the process that exported it
    }
    if (!peers_reach(settings().physical_device[context->device], handle.physical_device)) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    const std::unique_lock lock(memory_mutex());
    if (is_hostile(Hostility::kLimits) && is_opened_by_another(handle, *context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    EMULATED_TRY(add_peer(*context, ordinal_of(handle.physical_device, context->device)));
    return open_memory(handle, context, out);
}

EMULATED_GPU_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    EMULATED_UNSAFE_CALL(cuIpcCloseMemHandle);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    wait_for_device_of(*context);
    const std::unique_lock lock(memory_mutex());
    const Allocation *found = find_allocation(address);
    if (found == nullptr || found->kind != Kind::kImported) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (auto import = imports().begin(); import != imports().end(); ++import) {
        if (import->second.block == found->block) {
            if (--import->second.opened == 0) {
                unmap_import(import);
            }
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

EMULATED_GPU_EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event_handle)
{
    EMULATED_CALL(cuIpcGetEventHandle);
    const std::shared_ptr<Event> event = events().find(event_handle);
    if (out == nullptr || event == nullptr || event->shared == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const EventHandle handle{.tag = kEventTag ^ node_tag(),
                             .id = event->shared->id.load(),
                             .slot = slot_of(event->shared),
                             .process = getpid()};
    std::memset(out, 0, sizeof *out);
    std::memcpy(out, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle bytes)
{
    EMULATED_CALL(cuIpcOpenEventHandle);
    may_synchronise();
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    EventHandle handle;
    std::memcpy(&handle, &bytes, sizeof handle);
    if (out == nullptr || handle.tag != (kEventTag ^ node_tag())) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SharedEvent *shared = shared_event(handle.slot);
    if (shared == nullptr || shared->owner.load() != handle.process ||
        shared->id.load() != handle.id) {
        return CUDA_ERROR_INVALID_VALUE; // destroyed since
    }
    auto event = std::make_shared<Event>();
    event->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    event->context = context;
    event->shared = shared;
    event->imported = true;
    *out = static_cast<CUevent>(events().add(event));
    return CUDA_SUCCESS;
}
