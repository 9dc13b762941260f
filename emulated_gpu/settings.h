// The EMU_ environment variables, read once: README.md has their meaning.
#pragma once

#include "emulated_gpu/machine.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll::emulated_gpu {

inline constexpr int kMaxDevices = 16;

struct Settings {
    int physical_devices;                   // EMU_NUM_DEVICES or those of EMU_LINKS, times `mig`
    int mig;                                // EMU_MIG: instances of each GPU; 1: it is not divided
    int device_count;                       // of these, those that CUDA_VISIBLE_DEVICES leaves
    int physical_device[kMaxDevices];       // ordinal -> device of the (emulated) node
    std::size_t memory_bytes;               // EMU_MEM_MB, of each device
    std::size_t window_bytes;               // EMU_WINDOW_GB
    int multiprocessors;                    // EMU_SMS
    int compute_capability;                 // EMU_CC, 90 is 9.0
    int driver_version;                     // EMU_DRIVER_VERSION, 0: not set
    bool vmm, pools, gpu_direct_rdma;       // EMU_VMM, EMU_POOLS, EMU_GDR
    bool reuse_addresses;                   // EMU_VA_REUSE
    bool id_stays;                          // EMU_ID_STAYS
    bool poison;                            // EMU_POISON
    bool collapse;                          // EMU_COLLAPSE
    bool check_footprint;                   // EMU_CHECK_FOOTPRINT
    bool strict;                            // EMU_STRICT
    bool trace;                             // EMU_TRACE
    bool print_calls;                       // EMU_STATS
    bool print_leaks;                       // EMU_LEAKS
    long delay_us;                          // EMU_DELAY_US
    unsigned seed;                          // EMU_SEED
    bool stepped;                           // EMU_STEPPED
    const Machine *machine;                 // EMU_LINKS, or GPUs on a PCIe link each
    const Routes *routes;                   // on this machine
    bool has_links;                         // EMU_LINKS is set
    bool has_link_rates;                    // links take time: EMU_LINKS or EMU_LINK_GBPS
    double link_scale;                      // EMU_LINK_SCALE: emulated rate / rate of the machine
    std::uint64_t links_tag;                // differs with what the links are
    long link_latency_us;                   // EMU_LINK_LATENCY_US
    std::uint32_t unreachable[kMaxDevices]; // EMU_NO_PEER: bit of a peer, by physical device
    bool no_peer_over_sockets;              // EMU_NO_PEER=sockets
    const char *node;                       // EMU_NODE
    const char *window_place;               // EMU_VA: same, any or null
    const char *kernels;                    // EMU_KERNELS
    bool coherent;                          // EMU_COHERENT
    int rdma_ordering;                      // EMU_GDR_ORDERING
    const char *faults;                     // EMU_FAIL, null in the ranks that EMU_FAIL_RANK spares
};

[[nodiscard]] const Settings &settings();

// Whether two devices of the node reach each other's memory: there is a way, and EMU_NO_PEER does
// not forbid it.
[[nodiscard]] bool peers_reach(int physical_a, int physical_b);

// The ordinal of a device of the node, or `otherwise` if this process does not see it.
[[nodiscard]] int ordinal_of(int physical_device, int otherwise);

// Stable, and another one on every emulated node. An instance of a divided GPU has its own.
[[nodiscard]] Uuid device_uuid(int physical);
[[nodiscard]] Uuid gpu_uuid(int physical); // of the GPU that it is an instance of

} // namespace hetcoll::emulated_gpu
