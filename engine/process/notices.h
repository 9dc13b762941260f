// Messages that a process prints one time, however often their cause comes up.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hetcoll {

enum class Notice : std::uint8_t {
    kStaged,            // a call on device memory goes through host memory
    kWithoutKernels,    // all do, because our kernels cannot be loaded
    kWithoutPage,       // ranks of a node have no control page,
    kShmSpent,          // as the pages of others have taken this job's share of /dev/shm
    kTablesDiffer,      // ranks have read different tuning tables,
    kAggregatorsDiffer, // have different aggregators,
    kFixedPointDiffers, // different fixed points,
    kAdaptersDiffer,    // or different transports of adapters
    kWithoutShares,     // coll_hetcoll_shares cannot be used
    kSplitMachine,      // a machine's ranks are in several containers
    kUnmapped,          // a buffer of a peer cannot be mapped
    kWithoutRdma,       // vectors to an aggregator go over TLS, although RDMA was asked for
    kTopologyFile,      // the topology file is ignored
    kWithoutAdapters,   // coll_hetcoll_adapters cannot be used: the topology has none,
    kAdaptersFail,      // or they carry no messages
    kManyDevices,       // a communicator's calls alternate between GPUs or contexts
    kGpu,               // coll_hetcoll_verbose: this rank's GPU,
    kNode,              // what its node has,
    kSettingsDiffer,    // and what ranks have set to different values
};

// Thread safe.
class Notices {
public:
    // True once for each.
    [[nodiscard]] bool first_time(Notice notice) noexcept
    {
        return !said_[static_cast<std::size_t>(notice)].exchange(true);
    }

private:
    std::array<std::atomic<bool>, static_cast<std::size_t>(Notice::kSettingsDiffer) + 1> said_{};
};

} // namespace hetcoll
