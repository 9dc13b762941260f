// What a process has once, from the component's start to its end: the driver, the pointer cache,
// the CUDA contexts in use, and a store of bounces and staging memory that calls borrow. Nothing of
// it is made before a call needs it. Thread safe.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "engine/hetcoll.h"
#include "pointer_cache/pointer_cache.h"
#include "transport/device_bounce.h"
#include "transport/host_bounce.h"
#include "tuning/choice.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace hetcoll {

// Host memory for a staged call: pinned if it could be had, else pageable.
struct StagingMemory {
    std::shared_ptr<Device> device; // first: outlives the pinned memory
    PinnedMemory pinned;
    std::unique_ptr<std::byte[]> pageable;
    std::size_t bytes = 0;

    [[nodiscard]] std::byte *data() const noexcept
    {
        return pageable ? pageable.get() : static_cast<std::byte *>(pinned.get());
    }
};

class Process {
public:
    // An error names the setting that is wrong and what it may be.
    static Result<std::unique_ptr<Process>> create(const hetcoll_settings &settings);

    [[nodiscard]] const hetcoll_settings &settings() const noexcept { return settings_; }
    [[nodiscard]] const Log &log() const noexcept { return log_; }
    [[nodiscard]] hetcoll_facts facts() const noexcept;
    [[nodiscard]] PointerCache &pointers() noexcept { return *pointers_; }

    void offer_direct(const hetcoll_p2p &self, int tag) noexcept;

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
    // Null is allowed.
    void give_back(std::unique_ptr<DeviceBounce> bounce) noexcept;
    void give_back(std::unique_ptr<HostBounce> bounce) noexcept;
    void give_back(std::unique_ptr<StagingMemory> memory) noexcept;
    // After a driver error in the bounce's context: nothing made in it is used again.
    void discard(std::unique_ptr<DeviceBounce> bounce) noexcept;

    // True once.
    [[nodiscard]] bool first_time_staged() noexcept { return !staged_.exchange(true); }
    void count(hetcoll_counter counter, std::uint64_t by = 1) noexcept
    {
        counters_[counter].fetch_add(by, std::memory_order_relaxed);
    }
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
    };

    [[nodiscard]] Result<std::shared_ptr<Device>> device_of(const PointerInfo &pointer);
    [[nodiscard]] Result<std::shared_ptr<Device>> device_of_locked(const PointerInfo &pointer,
                                                                   Forgotten &forgotten);
    // Calls work(driver) with the context of the buffer current.
    template <class Work> Status in_context_of(const PointerInfo &pointer, const Work &work);
    [[nodiscard]] Result<std::unique_ptr<DeviceBounce>>
    make_device_bounce(const std::shared_ptr<Device> &device, bool ordinary, Forgotten &forgotten);
    void forget(const std::shared_ptr<Device> &device, Forgotten &forgotten) noexcept;
    [[nodiscard]] bool direct_works(Device &device);
    [[nodiscard]] std::size_t slot_bytes() const noexcept;

    hetcoll_settings settings_;
    Log log_;
    Log node_log_; // of one rank a node: for what concerns all of them alike
    PointerCacheMode cache_mode_ = PointerCacheMode::kValidated;
    std::optional<Algorithm> forced_;
    DriverLibrary library_;
    std::unique_ptr<PointerCache> pointers_;
    std::array<std::atomic<std::uint64_t>, HETCOLL_COUNTER_COUNT> counters_{};
    std::atomic<bool> staged_{false};

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
};

} // namespace hetcoll
