// What a process has once, from the component's start to its end: the driver, the pointer cache,
// the CUDA contexts in use, and a store of bounces and staging memory that calls borrow. Nothing of
// it is made before a call needs it. Thread safe.
#pragma once

#include "aggregator/endpoint.h"
#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "device/nvtx.h"
#include "engine/call_record.h"
#include "engine/hetcoll.h"
#include "engine/trace.h"
#include "engine/user_ops.h"
#include "pointer_cache/pointer_cache.h"
#include "topology/topology.h"
#include "topology_probe/probe.h"
#include "transport/device_bounce.h"
#include "transport/exporter.h"
#include "transport/host_bounce.h"
#include "transport/peer_memory.h"
#include "tuning/choice.h"
#include "tuning/rank_shares.h"
#include "tuning/table_file.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

// Host memory for a staged call: pinned if it could be had, else pageable.
struct StagingMemory {
    std::shared_ptr<Device> device; // first: outlives the pinned memory
    PinnedMemory pinned;
    std::unique_ptr<std::byte[]> pageable;
    std::size_t bytes = 0;
    StreamHandle stream; // to copy on, and what tells that it is done: of a Stage, which makes them
    EventHandle done;

    [[nodiscard]] std::byte *data() const noexcept
    {
        return pageable ? pageable.get() : static_cast<std::byte *>(pinned.get());
    }
};

// Device memory that peers may map, for what they may not: the vector of one call.
struct Scratch {
    std::shared_ptr<Device> device; // first: outlives the memory
    DeviceMemory memory;
    std::size_t bytes = 0;
    Allocation allocation{};

    [[nodiscard]] std::byte *data() const noexcept
    {
        return reinterpret_cast<std::byte *>(memory.get());
    }
};

// coll_hetcoll_aggregators and what goes with it.
struct AggregatorList {
    std::vector<Endpoint> endpoints;
    std::string key;
    int window = 0;
    std::size_t copy_bytes = 0; // most that a call in place keeps of its input
    std::uint64_t hash = 0;     // of all but the key; never 0
};

// What it takes to share memory with the other processes of the node.
struct Sharing {
    std::shared_ptr<FdChannel> channel; // null: no file descriptors can be passed
    std::unique_ptr<Exporter> exporter;
    std::unique_ptr<PeerMemory> memory;
};

class Process {
public:
    // An error names the setting that is wrong and what it may be.
    static Result<std::unique_ptr<Process>> create(const hetcoll_settings &settings);

    [[nodiscard]] const hetcoll_settings &settings() const noexcept { return settings_; }
    [[nodiscard]] const Log &log() const noexcept { return log_; }
    [[nodiscard]] hetcoll_facts facts() const noexcept;
    [[nodiscard]] PointerCache &pointers() noexcept { return *pointers_; }
    [[nodiscard]] const NodeIdentity &identity() const noexcept { return identity_; }
    // coll_hetcoll_node is set: nodes are what the user says.
    [[nodiscard]] bool has_node_word() const noexcept { return has_node_word_; }
    // coll_hetcoll_shares.
    [[nodiscard]] const ShareSetting &shares() const noexcept { return shares_; }
    // The user-defined operations that it knows; null: none.
    [[nodiscard]] UserOps *user_ops() noexcept { return user_ops_.get(); }
    // Null: none.
    [[nodiscard]] const AggregatorList *aggregators() const noexcept
    {
        return aggregators_ ? &*aggregators_ : nullptr;
    }
    // Some communicator's ranks could not join them.
    void note_aggregators_failed() noexcept { aggregators_failed_ = true; }
    [[nodiscard]] bool aggregators_failed() const noexcept { return aggregators_failed_; }
    // One rank a node says what concerns all of its ranks alike.
    [[nodiscard]] const Log &node_log() const noexcept { return node_log_; }

    // Whether so many bytes more of pinned or device memory can be held: coll_hetcoll_max_memory.
    [[nodiscard]] bool may_hold(std::size_t more_bytes) const noexcept;

    void offer_direct(const hetcoll_p2p &self, int tag) noexcept;

    // The context of a device or managed pointer.
    [[nodiscard]] Result<std::shared_ptr<Device>> device_of(const PointerInfo &pointer);
    // Whether the work on the legacy stream of the buffer's context is complete.
    Result<bool> legacy_work_done(const PointerInfo &device);
    // Waits for all work of the buffer's context.
    Status synchronize(const PointerInfo &device);
    // For the rare call that has no bounce: a copy to or from a device buffer that is complete on
    // return.
    Status copy_blocking(void *to, const void *from, std::size_t bytes, const PointerInfo &device);

    // A bounce in the context of a device or managed pointer. The fast path takes one from the
    // store.
    // `ordinary`: Open MPI may be given pointers to the buffers, if its messages carry device
    // memory.
    Result<std::unique_ptr<DeviceBounce>> borrow_device(const PointerInfo &pointer, bool ordinary);
    Result<std::unique_ptr<HostBounce>> borrow_host();
    // `device` may be null: pageable memory. Else its context is current.
    Result<std::unique_ptr<StagingMemory>> borrow_staging(const std::shared_ptr<Device> &device,
                                                          std::size_t bytes);
    // The device's context is current.
    Result<std::unique_ptr<Scratch>> borrow_scratch(const std::shared_ptr<Device> &device,
                                                    std::size_t bytes);
    // Made at first use; requires that the driver is loaded.
    [[nodiscard]] Sharing &sharing();
    // This rank's place in the machine, in the context of a device pointer.
    [[nodiscard]] Result<RankRecord> probe(const PointerInfo &pointer);
    // The tuning table; null: none.
    [[nodiscard]] const TableFile *table() const noexcept { return table_ ? &*table_ : nullptr; }
    [[nodiscard]] bool is_emulated() const noexcept { return library_.is_emulated(); }
    // What coll_hetcoll_topology_file names; null: none. Read at first use.
    [[nodiscard]] Result<const Topology *> topology_file();

    // Null is allowed.
    void give_back(std::unique_ptr<Scratch> scratch) noexcept;
    void give_back(std::unique_ptr<DeviceBounce> bounce) noexcept;
    void give_back(std::unique_ptr<HostBounce> bounce) noexcept;
    void give_back(std::unique_ptr<StagingMemory> memory) noexcept;
    // After a driver error in the bounce's context: nothing made in it is used again.
    void discard(std::unique_ptr<DeviceBounce> bounce) noexcept;

    // True once each.
    [[nodiscard]] bool first_time_staged() noexcept { return !staged_.exchange(true); }
    [[nodiscard]] bool first_time_without_page() noexcept { return !pageless_.exchange(true); }
    [[nodiscard]] bool first_time_tables_differ() noexcept
    {
        return !tables_differ_.exchange(true);
    }
    [[nodiscard]] bool first_time_aggregators_differ() noexcept
    {
        return !aggregators_differ_.exchange(true);
    }
    [[nodiscard]] bool first_time_fixed_point_differs() noexcept
    {
        return !fixed_point_differs_.exchange(true);
    }
    [[nodiscard]] bool first_time_without_shares() noexcept { return !shareless_.exchange(true); }
    [[nodiscard]] bool first_time_split_machine() noexcept
    {
        return !split_machine_.exchange(true);
    }
    void count(hetcoll_counter counter, std::uint64_t by = 1) noexcept
    {
        counters_[counter].fetch_add(by, std::memory_order_relaxed);
    }
    void set(hetcoll_counter level, std::uint64_t to) noexcept
    {
        counters_[level].store(to, std::memory_order_relaxed);
    }
    // For time counters and the trace.
    void observe(const CallRecord &record) noexcept;
    [[nodiscard]] bool times_small() const noexcept
    {
        return times_small_.load(std::memory_order_relaxed) != 0;
    }
    void time_small(int change) noexcept { times_small_ += change; }
    [[nodiscard]] Trace *trace() noexcept { return trace_.get(); }
    [[nodiscard]] const Nvtx &nvtx() const noexcept { return nvtx_; }
    // An engine's own share of HETCOLL_CALLS_SMALL, while it lives and after.
    void add_small_calls(const std::atomic<std::uint64_t> &calls);
    void remove_small_calls(const std::atomic<std::uint64_t> &calls) noexcept;
    [[nodiscard]] std::uint64_t counter(hetcoll_counter counter) const noexcept;

private:
    explicit Process(const hetcoll_settings &settings);

    // What was made in a context that is used no more. Destroyed without the lock: it may wait for
    // copies that still run.
    struct Forgotten {
        std::vector<std::unique_ptr<DeviceBounce>> devices;
        std::vector<std::unique_ptr<StagingMemory>> staging;
        std::vector<std::unique_ptr<Scratch>> scratch;
    };

    void open_trace(const char *pattern);
    Status read_aggregators(const hetcoll_settings &settings);
    void read_tuning_table(const char *name);
    [[nodiscard]] Result<std::shared_ptr<Device>> device_of_locked(const PointerInfo &pointer,
                                                                   Forgotten &forgotten);
    // Calls work(driver) with the context of the buffer current.
    template <class Work> Status in_context_of(const PointerInfo &pointer, const Work &work);
    [[nodiscard]] Result<std::unique_ptr<DeviceBounce>>
    make_device_bounce(const std::shared_ptr<Device> &device, bool ordinary, Forgotten &forgotten);
    void forget(const std::shared_ptr<Device> &device, Forgotten &forgotten) noexcept;
    [[nodiscard]] bool direct_works(Device &device);
    [[nodiscard]] std::size_t slot_bytes() const noexcept;
    [[nodiscard]] bool make_room(std::size_t bytes);

    hetcoll_settings settings_;
    Log log_;
    Log node_log_; // of one rank a node: for what concerns all of them alike
    PointerCacheMode cache_mode_ = PointerCacheMode::kValidated;
    std::uint32_t algorithm_ = 0; // as in the facts
    NodeIdentity identity_{};
    bool has_node_word_ = false;
    std::string topology_name_;
    ShareSetting shares_;
    std::optional<TableFile> table_;
    std::unique_ptr<UserOps> user_ops_; // null: coll_hetcoll_recognize_ops is 0
    std::uint64_t table_hash_ = 0;      // 0: no table
    MemoryUse memory_use_;              // before all that holds memory
    std::unique_ptr<Trace> trace_;      // null: none
    std::atomic<int> times_small_{0};
    Nvtx nvtx_;
    DriverLibrary library_;
    std::optional<MachineProbe> machine_;
    std::unique_ptr<PointerCache> pointers_;
    std::array<std::atomic<std::uint64_t>, HETCOLL_COUNTER_COUNT> counters_{};
    std::atomic<bool> staged_{false}, pageless_{false}, tables_differ_{false},
        split_machine_{false}, fixed_point_differs_{false}, shareless_{false},
        aggregators_differ_{false}, aggregators_failed_{false};
    std::optional<AggregatorList> aggregators_;

    std::mutex topology_mutex_; // of the next two
    bool topology_read_ = false;
    Result<std::optional<Topology>> topology_{std::optional<Topology>()};

    mutable std::mutex mutex_; // of all below
    std::vector<const std::atomic<std::uint64_t> *> small_calls_;
    std::optional<hetcoll_p2p> self_;
    int self_tag_ = 0;
    std::optional<bool> direct_;
    bool emulation_announced_ = false;
    std::vector<std::shared_ptr<Device>> devices_;
    std::vector<std::unique_ptr<DeviceBounce>> idle_devices_;
    std::vector<std::unique_ptr<HostBounce>> idle_hosts_;
    std::vector<std::unique_ptr<StagingMemory>> idle_staging_;
    std::vector<std::unique_ptr<Scratch>> idle_scratch_;
    std::optional<Sharing> sharing_;
};

} // namespace hetcoll
