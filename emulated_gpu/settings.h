// The EMU_ environment variables, read once: README.md has their meaning.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hetcoll::emulated_gpu {

inline constexpr int kMaxDevices = 16;

struct Settings {
    int physical_devices;                   // EMU_NUM_DEVICES
    int device_count;                       // of these, those that CUDA_VISIBLE_DEVICES leaves
    int physical_device[kMaxDevices];       // ordinal -> device of the (emulated) node
    std::size_t memory_bytes;               // EMU_MEM_MB, of each device
    std::size_t window_bytes;               // EMU_WINDOW_GB
    int multiprocessors;                    // EMU_SMS
    int compute_capability;                 // EMU_CC, 90 is 9.0
    int driver_version;                     // EMU_DRIVER_VERSION
    bool vmm, pools, gpu_direct_rdma;       // EMU_VMM, EMU_POOLS, EMU_GDR
    bool reuse_addresses;                   // EMU_VA_REUSE
    bool id_stays;                          // EMU_ID_STAYS
    bool poison;                            // EMU_POISON
    bool collapse;                          // EMU_COLLAPSE
    bool strict;                            // EMU_STRICT
    bool trace;                             // EMU_TRACE
    bool print_calls;                       // EMU_STATS
    bool print_leaks;                       // EMU_LEAKS
    long delay_us;                          // EMU_DELAY_US
    unsigned seed;                          // EMU_SEED
    double link_bytes_per_ns;               // EMU_LINK_GBPS; 0 is as fast as the host copies
    long link_latency_us;                   // EMU_LINK_LATENCY_US
    std::uint32_t unreachable[kMaxDevices]; // EMU_NO_PEER: bit of a peer, by physical device
    const char *node;                       // EMU_NODE
    const char *window_place;               // EMU_VA: same, any or null
    const char *kernels;                    // EMU_KERNELS
    const char *faults;                     // EMU_FAIL, null in the ranks that EMU_FAIL_RANK spares
};

[[nodiscard]] const Settings &settings();

// Whether two devices of the node reach each other's memory (EMU_NO_PEER).
[[nodiscard]] bool peers_reach(int physical_a, int physical_b);

} // namespace hetcoll::emulated_gpu
