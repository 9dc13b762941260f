// State that the processes of one (emulated) node share, in POSIX shared memory: how much device
// memory each uses, interprocess events, which blocks of memory are exported and who maps them, and
// until when the links are busy. All zero is a valid start, and what a killed process left is taken
// over or removed by the next one.
#pragma once

#include "emulated_gpu/link_clock.h"
#include "emulated_gpu/settings.h"

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hetcoll::emulated_gpu {

// An interprocess event. Counts go up only and wrap around.
struct SharedEvent {
    std::atomic<int> owner;               // process id, 0 if the slot is free
    std::atomic<std::uint32_t> recorded;  // cuEventRecord calls so far
    std::atomic<std::uint32_t> completed; // of these, how many happened on the device
    std::atomic<std::uint64_t> id;
};

inline constexpr int kMaxSharedEvents = 4096, kMaxSharedExports = 4096, kMaxLinkDirections = 1024;

// Joins the node that EMU_NODE names; fails, with a message, if shared memory cannot be had. The
// last process to leave removes it.
[[nodiscard]] CUresult join_node();
void leave_node();

// Differs between nodes: part of every IPC handle.
[[nodiscard]] std::uint64_t node_tag();
[[nodiscard]] std::uint64_t new_node_id(); // unique among the processes of the node

// Bytes in use on a device by all live processes, with what its owner has freed and a process still
// maps; and this process's share.
[[nodiscard]] std::size_t memory_in_use(int physical_device);
void add_memory_in_use(int physical_device, std::int64_t bytes);

[[nodiscard]] SharedEvent *new_shared_event(); // nullptr if all are taken
[[nodiscard]] SharedEvent *shared_event(int slot);
[[nodiscard]] int slot_of(const SharedEvent *event);

// Blocks that other processes may map. Require the memory lock (memory.h).
[[nodiscard]] int new_shared_export(std::uint64_t block_id, std::size_t bytes,
                                    int physical_device);     // -1 if all are taken
[[nodiscard]] int find_shared_export(std::uint64_t block_id); // -1: there is none
// This process maps the block, maybe once more. False if its owner has freed it since.
[[nodiscard]] bool open_shared_export(int slot, std::uint64_t block_id);
void close_shared_export(int slot);
[[nodiscard]] int importers_of(int slot); // processes that map it
// This process has exported the block and frees it. While others map it, it counts as in use.
void free_shared_export(int slot);

// The clock of a direction of settings().routes.
[[nodiscard]] LinkClock *link_clock(int direction);

[[nodiscard]] bool is_complete(const SharedEvent &event, std::uint32_t record);
void complete(SharedEvent &event, std::uint32_t record);
void wait_for(SharedEvent &event, std::uint32_t record);

} // namespace hetcoll::emulated_gpu
