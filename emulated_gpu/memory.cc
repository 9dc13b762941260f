#include "emulated_gpu/memory.h"

#include "emulated_gpu/contexts.h"
#include "emulated_gpu/node.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/sanitizers.h"
#include "emulated_gpu/settings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace hetcoll::emulated_gpu {
namespace {

constexpr std::size_t kAlignment = 512; // of every allocation
constexpr std::size_t kLargestPoisoned = std::size_t{64} << 20;

struct Memory {
    std::shared_mutex mutex;
    std::map<Address, Allocation *> allocations;
    std::map<int, std::vector<Block *>> shared_blocks;         // by device
    std::map<std::pair<Kind, Address>, std::uint64_t> last_id; // for EMU_ID_STAYS
    std::uint64_t next_buffer_id = 1;
};

Memory &memory()
{
    static Memory &the = *new Memory; // never destroyed: calls may come while the process ends
    return the;
}

std::uint64_t buffer_id_for(Kind kind, Address start)
{
    const std::uint64_t fresh = memory().next_buffer_id++;
    if (!settings().id_stays || (kind != Kind::kVmm && kind != Kind::kPool)) {
        return fresh;
    }
    return memory().last_id.try_emplace({kind, start}, fresh).first->second;
}

void warn_of_importers(const Block &block)
{
    if (block.export_slot < 0 || block.imported) {
        return;
    }
    if (const int importers = importers_of(block.export_slot); importers > 0) {
        // Libraries that keep mappings cannot know of every free in another process.
        if (settings().strict) {
            say("device memory %#zx is freed while %d process(es) still map it", block.start,
                importers);
            std::abort();
        }
        if (block.start != 0) {
            unpoison_for_asan(reachable(block.start), block.bytes); // between its allocations
            fill_unspecified(block.start, block.bytes, kFreedFill);
        }
    }
}

// Takes `bytes` from the range given back last that has so many. False if there is none.
bool take_span(Block &block, std::size_t bytes, std::size_t &offset)
{
    const auto found = std::find_if(block.free.rbegin(), block.free.rend(),
                                    [bytes](const BlockSpan &span) { return span.bytes >= bytes; });
    if (found == block.free.rend()) {
        return false;
    }
    offset = found->offset;
    found->offset += bytes;
    found->bytes -= bytes;
    std::erase_if(block.free, [](const BlockSpan &span) { return span.bytes == 0; });
    return true;
}

void give_span(Block &block, BlockSpan span)
{
    std::erase_if(block.free, [&span](const BlockSpan &other) {
        const bool before = other.offset + other.bytes == span.offset;
        const bool behind = span.offset + span.bytes == other.offset;
        span.offset = before ? other.offset : span.offset;
        span.bytes += before || behind ? other.bytes : 0;
        return before || behind;
    });
    block.free.push_back(span);
}

// A block that several small allocations share.
Block *new_shared_block(int device, CUresult &result)
{
    Block *block = new_block(kGranule, device, result);
    if (block == nullptr) {
        return nullptr;
    }
    block->start = take_range(kGranule);
    block->range_bytes = kGranule;
    if (block->start == 0 || !map_device(block->start, kGranule, block->fd, 0)) {
        drop_block(block);
        result = CUDA_ERROR_OUT_OF_MEMORY;
        return nullptr;
    }
    block->is_shared = true;
    block->free.push_back({0, kGranule});
    poison_for_asan(reachable(block->start), kGranule);
    memory().shared_blocks[device].push_back(block);
    return block;
}

// One with room, which is taken. Null if there is none.
Block *find_shared_block(int device, std::size_t bytes, std::size_t &offset)
{
    const std::vector<Block *> &blocks = memory().shared_blocks[device];
    const auto found = std::find_if(blocks.rbegin(), blocks.rend(),
                                    [&](Block *block) { return take_span(*block, bytes, offset); });
    return found != blocks.rend() ? *found : nullptr;
}

CUresult allocate_small(CUdeviceptr *out, std::size_t bytes, int device, Context *context)
{
    const std::size_t span_bytes = round_up(bytes, kAlignment);
    std::size_t offset = 0;
    Block *block = find_shared_block(device, span_bytes, offset);
    if (block == nullptr) {
        CUresult result = CUDA_SUCCESS;
        block = new_shared_block(device, result);
        if (block == nullptr || !take_span(*block, span_bytes, offset)) {
            return result;
        }
    }
    ++block->shares;
    const Address start = block->start + offset;
    add_allocation(start, bytes, Kind::kDevice, device, context, block);
    unpoison_for_asan(reachable(start), span_bytes);
    fill_unspecified(start, span_bytes, kFreshFill);
    poison_for_asan(reachable(start) + bytes, span_bytes - bytes);
    *out = start;
    return CUDA_SUCCESS;
}

void release_small(Allocation *allocation)
{
    Block *block = allocation->block;
    const Address start = allocation->start;
    const std::size_t span_bytes = round_up(allocation->bytes, kAlignment);
    unpoison_for_asan(reachable(start), span_bytes);
    fill_unspecified(start, span_bytes, kFreedFill);
    poison_for_asan(reachable(start), span_bytes);
    give_span(*block, {start - block->start, span_bytes});
    remove_allocation(allocation);
    std::vector<Block *> &blocks = memory().shared_blocks[block->device];
    if (--block->shares == 0 && blocks.size() > 1) {
        blocks.erase(std::find(blocks.begin(), blocks.end(), block));
        drop_block(block);
    }
}

CUresult allocate_block(CUdeviceptr *out, std::size_t bytes, Kind kind, int device,
                        Context *context, CUmemoryPool pool)
{
    CUresult result = CUDA_SUCCESS;
    Block *block = new_block(bytes, device, result);
    if (block == nullptr) {
        return result;
    }
    const std::size_t range_bytes = block->bytes + kGranule; // with a gap behind it
    const Address start = take_range(range_bytes);
    if (start == 0) {
        drop_block(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->start = start;
    block->range_bytes = range_bytes;
    const bool mapped = kind == Kind::kManaged ? map_managed(start, block->bytes, block->fd)
                                               : map_device(start, block->bytes, block->fd, 0);
    if (!mapped) {
        drop_block(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    add_allocation(start, bytes, kind, device, context, block)->pool = pool;
    fill_unspecified(start, bytes, kFreshFill);
    poison_for_asan(reachable(start) + bytes, block->bytes - bytes);
    *out = start;
    return CUDA_SUCCESS;
}

// Requires the lock.
void release_allocation(Allocation *allocation)
{
    switch (allocation->kind) {
    case Kind::kDevice:
    case Kind::kManaged:
    case Kind::kPool:
        if (allocation->block->is_shared) {
            release_small(allocation);
            return;
        }
        break;
    case Kind::kHost: give_range(allocation->start, allocation->bytes); break;
    default: break;
    }
    Block *block = allocation->kind == Kind::kHost ? nullptr : allocation->block;
    remove_allocation(allocation);
    if (block != nullptr) {
        drop_block(block);
    }
}

} // namespace

const char *kind_name(Kind kind)
{
    static constexpr const char *kNames[] = {
        "device", "managed", "pinned host", "registered host", "imported", "VMM mapping", "pool"};
    return kNames[static_cast<int>(kind)];
}

std::shared_mutex &memory_mutex() { return memory().mutex; }

std::map<Address, Allocation *> &allocations() { return memory().allocations; }

Allocation *find_allocation(Address address)
{
    const auto &all = memory().allocations;
    const auto next = all.upper_bound(address);
    if (next == all.begin()) {
        return nullptr;
    }
    Allocation *candidate = std::prev(next)->second;
    return address - candidate->start < candidate->bytes ? candidate : nullptr;
}

Allocation *add_allocation(Address start, std::size_t bytes, Kind kind, int device,
                           Context *context, Block *block)
{
    auto *added = new Allocation{.start = start,
                                 .bytes = bytes,
                                 .kind = kind,
                                 .device = device,
                                 .context = context,
                                 .buffer_id = buffer_id_for(kind, start),
                                 .block = block};
    added->open_to = kind == Kind::kVmm ? 0 : 1u << device;
    added->sync_memops = context != nullptr && context->sync_memops;
    memory().allocations[start] = added;
    return added;
}

void remove_allocation(Allocation *allocation)
{
    memory().allocations.erase(allocation->start);
    delete allocation;
}

Block *new_block(std::size_t bytes, int device, CUresult &result)
{
    bytes = round_up(bytes, kGranule);
    const int physical = settings().physical_device[device];
    if (bytes == 0 || memory_in_use(physical) + bytes > settings().memory_bytes) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
        return nullptr;
    }
    const std::uint64_t id = new_node_id();
    char name[64];
    std::snprintf(name, sizeof name, "emulated-gpu-block-%llu device %d",
                  static_cast<unsigned long long>(id), physical);
    const int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
        say("no file for %zu bytes of device memory: %m (each block of it is an open file, see "
            "ulimit -n)",
            bytes);
        if (fd >= 0) {
            close(fd);
        }
        result = CUDA_ERROR_OUT_OF_MEMORY;
        return nullptr;
    }
    auto *block = new Block;
    block->fd = fd;
    block->id = id;
    block->bytes = bytes;
    block->device = device;
    block->physical_device = physical;
    add_memory_in_use(physical, static_cast<std::int64_t>(bytes));
    return block;
}

bool find_block(int fd, std::uint64_t &id, int &physical_device)
{
    char path[64], name[128] = "";
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof name - 1) < 0) {
        return false;
    }
    unsigned long long number = 0;
    const bool found = std::sscanf(name, "/memfd:emulated-gpu-block-%llu device %d", &number,
                                   &physical_device) == 2;
    id = number;
    return found && physical_device >= 0 && physical_device < settings().physical_devices;
}

int export_slot_of(Block &block)
{
    if (block.export_slot < 0) {
        block.export_slot = new_shared_export(block.id, block.bytes, block.physical_device);
    }
    return block.export_slot;
}

void drop_block(Block *block)
{
    if (--block->references > 0) {
        return;
    }
    warn_of_importers(*block);
    if (block->start != 0 && block->host_sees) {
        unpoison_for_asan(reachable(block->start), block->bytes); // what lies between allocations
        fill_unspecified(block->start, block->bytes, kFreedFill);
    }
    if (block->start != 0) {
        give_range(block->start, block->range_bytes);
    }
    if (block->fd >= 0) {
        close(block->fd);
    }
    if (block->export_slot >= 0) {
        block->imported ? close_shared_export(block->export_slot)
                        : free_shared_export(block->export_slot);
    }
    if (!block->imported) {
        add_memory_in_use(block->physical_device, -static_cast<std::int64_t>(block->bytes));
    }
    delete block;
}

CUresult allocate(CUdeviceptr *out, std::size_t bytes, Kind kind, int device, Context *context,
                  CUmemoryPool pool)
{
    if (out == nullptr || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::unique_lock lock(memory_mutex());
    if (kind == Kind::kDevice && bytes <= kGranule / 2) {
        return allocate_small(out, bytes, device, context);
    }
    return allocate_block(out, bytes, kind, device, context, pool);
}

CUresult release(CUdeviceptr start)
{
    const std::unique_lock lock(memory_mutex());
    const auto found = allocations().find(start);
    if (found == allocations().end()) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    Allocation *allocation = found->second;
    if (allocation->kind != Kind::kDevice && allocation->kind != Kind::kManaged &&
        allocation->kind != Kind::kPool) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    release_allocation(allocation);
    return CUDA_SUCCESS;
}

void release_all_of(Context *context)
{
    const std::unique_lock lock(memory_mutex());
    std::vector<Allocation *> gone;
    for (const auto &[start, allocation] : allocations()) {
        if (allocation->context == context && allocation->kind != Kind::kImported) {
            gone.push_back(allocation);
        }
    }
    for (Allocation *allocation : gone) {
        release_allocation(allocation);
    }
}

void fill_unspecified(Address start, std::size_t bytes, int byte)
{
    if (settings().poison && bytes <= kLargestPoisoned) {
        std::memset(reachable_as<void>(start), byte, bytes);
    }
}

AllocationFacts facts_for_diagnosis(Address address)
{
    const std::shared_lock lock(memory_mutex(), std::try_to_lock);
    const Allocation *found = lock.owns_lock() ? find_allocation(address) : nullptr;
    if (found == nullptr) {
        return {};
    }
    return {true, found->start, found->bytes, found->buffer_id};
}

} // namespace hetcoll::emulated_gpu
