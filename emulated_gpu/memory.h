// All memory that the driver knows in this process: who allocated it, of which kind, where, and
// which block of physical memory (a memfd) holds it.
#pragma once

#include "emulated_gpu/window.h"

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <shared_mutex>
#include <vector>

namespace hetcoll::emulated_gpu {

struct Context;

enum class Kind : std::uint8_t {
    kDevice,
    kManaged,
    kHost,           // cuMemHostAlloc
    kHostRegistered, // cuMemHostRegister
    kImported,       // cuIpcOpenMemHandle
    kVmm,            // cuMemMap
    kPool,           // cuMemAllocAsync
};
[[nodiscard]] const char *kind_name(Kind kind);

// A part of a block.
struct BlockSpan {
    std::size_t offset, bytes;
};

// Physical memory of a device.
struct Block {
    int fd = -1;
    std::uint64_t id = 0; // unique on the node, and part of the memfd's name
    std::size_t bytes = 0;
    int device = 0;          // as an ordinal of this process
    int physical_device = 0; // of the node
    int references = 1;
    Address start = 0;           // where this process sees it; 0 for a VMM handle
    std::size_t range_bytes = 0; // of the address range taken for it
    int export_slot = -1;        // in the node, once it was exported or if it is imported
    bool imported = false;       // another process's memory
    unsigned handle_types = 0;   // of VMM: CUmemAllocationHandleType
    bool host_sees = false;      // the processor may have mapped it: direct_rdma.cc
    bool is_shared = false;      // by small allocations; else it is one allocation
    unsigned shares = 0;         // how many of them it has
    std::vector<BlockSpan> free; // what is left of a shared block; the last was given back last
};

struct Allocation {
    Address start;
    std::size_t bytes;
    Kind kind;
    int device;
    Context *context; // null for VMM and pools
    std::uint64_t buffer_id;
    Block *block; // null for host memory
    unsigned host_flags = 0;
    CUmemoryPool pool = nullptr;
    unsigned open_to = 0; // devices, as bits, that reach it without being made peers
    std::atomic<bool> sync_memops{false};
};

// Addresses that a program has reserved for mappings.
struct Reservation {
    Address start;
    std::size_t bytes;
};

// Guards everything declared here and the window's ranges. Exclusive to change, shared to look.
[[nodiscard]] std::shared_mutex &memory_mutex();

// By start address. Requires the lock.
[[nodiscard]] std::map<Address, Allocation *> &allocations();
// Where a VMM mapping lies. Requires the lock, and a mapped address.
[[nodiscard]] Reservation reservation_of(Address address);
// The allocation that holds `address`, or null. Requires the lock.
[[nodiscard]] Allocation *find_allocation(Address address);

// Enters an allocation under a fresh buffer id. With EMU_ID_STAYS, VMM mappings and pool memory at
// an address get the id that was there before. Requires the lock.
Allocation *add_allocation(Address start, std::size_t bytes, Kind kind, int device,
                           Context *context, Block *block);
// Requires the lock.
void remove_allocation(Allocation *allocation);

// New physical memory in whole granules, not mapped. Null, with the reason in `result`, if there is
// none. Require the lock.
[[nodiscard]] Block *new_block(std::size_t bytes, int device, CUresult &result);
void drop_block(Block *block);
// The block whose memory this file is, and the node's device that holds it. False if it is none.
[[nodiscard]] bool find_block(int fd, std::uint64_t &id, int &physical_device);
// The block's number among what the node's processes export; -1 if there is no room for it.
[[nodiscard]] int export_slot_of(Block &block);

// cuMemAlloc and its kin. Small device allocations share blocks, as with the real driver.
CUresult allocate(CUdeviceptr *out, std::size_t bytes, Kind kind, int device, Context *context,
                  CUmemoryPool pool = nullptr);
// Frees device, managed or pool memory that starts at `start`.
CUresult release(CUdeviceptr start);

// Frees what was allocated in a context that goes away.
void release_all_of(Context *context);

// Fills memory that nobody may rely on, so that use of it shows. Requires the memory mapped.
inline constexpr int kFreshFill = 0xCD, kFreedFill = 0xDB;
void fill_unspecified(Address start, std::size_t bytes, int byte);

// For the signal handler: takes the lock only if it is free.
struct AllocationFacts {
    bool found;
    Address start;
    std::size_t bytes;
    unsigned long long buffer_id;
};
[[nodiscard]] AllocationFacts facts_for_diagnosis(Address address);

} // namespace hetcoll::emulated_gpu
