// What calls borrow, kept for the next one: bounces, staging memory, memory that peers may map; and
// the CUDA contexts that it was made in. Nothing is made before a call needs it. Thread safe.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "engine/process/counters.h"
#include "engine/process/direct_probe.h"
#include "engine/types/settings.h"
#include "pointer_cache/pointer_cache.h"
#include "transport/device_bounce.h"
#include "transport/exporter.h"
#include "transport/host_bounce.h"
#include "transport/known_reach.h"
#include "transport/node_identity.h"
#include "transport/peer_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
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
    StreamHandle stream; // to copy on, and what tells that it is done: of a Stage, which makes them
    EventHandle done;

    [[nodiscard]] std::byte *data() const noexcept
    {
        return pageable ? pageable.get() : static_cast<std::byte *>(pinned.get());
    }
};

// Device memory that peers may map, in place of memory that they may not: the vector of one call.
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

// What it takes to share memory with the other processes of the node.
struct Sharing {
    std::shared_ptr<FdChannel> channel; // null: no file descriptors can be passed
    std::unique_ptr<Exporter> exporter;
    std::unique_ptr<PeerMemory> memory;
    KnownReach reach; // its offers are of memory of this process
};

// How a bounce's messages leave: through its slots, or straight from the call's buffers if Open
// MPI's messages are known to carry device memory.
enum class Sends : std::uint8_t { kBounced, kDirectIfPossible };

class Store {
public:
    // What the store stands on. It outlives the store.
    struct Ground {
        const hetcoll_settings &settings;
        const Log &log, &node_log; // the latter of one rank a node
        const ProcessIdentity &self;
        const DriverLibrary &driver;
        PointerCache &pointers;
        Counters &counters;
    };
    explicit Store(const Ground &ground) noexcept;
    ~Store();
    Store(const Store &) = delete;
    Store &operator=(const Store &) = delete;

    // Bytes of a slot of a bounce that is not divided.
    [[nodiscard]] std::size_t slot_bytes() const noexcept;
    // Whether so many bytes more of pinned or device memory can be held: coll_hetcoll_max_memory.
    [[nodiscard]] bool may_hold(std::size_t more_bytes) const noexcept;
    [[nodiscard]] const MemoryUse &memory_use() const noexcept { return memory_use_; }
    [[nodiscard]] QueuedCalls &queued() noexcept { return queued_; }
    // Open MPI says that its messages carry device memory: see DirectMessages.
    void offer_direct(const hetcoll_p2p &self, int tag) noexcept;
    // Whether it is known if they do; else ask again later. Tried in the context of the first
    // pointer.
    [[nodiscard]] bool has_tried_direct(const PointerInfo &pointer);

    // The context of a device or managed pointer.
    [[nodiscard]] Result<std::shared_ptr<Device>> device_of(const PointerInfo &pointer);
    // The context of a stream. Makes memory there for a moment.
    [[nodiscard]] Result<std::shared_ptr<Device>> device_of(CUstream stream);
    // Whether the work on the legacy stream of the buffer's context is complete, or need not be.
    Result<bool> legacy_work_done(const PointerInfo &device);
    // Waits for all work of the buffer's context.
    Status synchronize(const PointerInfo &device);
    // For the rare call that has no bounce: a copy to or from a device buffer that is complete on
    // return.
    Status copy_blocking(void *to, const void *from, std::size_t bytes, const PointerInfo &device);

    // The same of elements, but for their padding.
    Status copy_elements_blocking(void *to, const void *from, std::size_t count, ElementKind kind,
                                  const PointerInfo &device);

    // A bounce in the context of a device or managed pointer. The fast path takes one from the
    // store. Where calls may be queued it has all that it may ever need, so that it makes nothing
    // while some are.
    Result<std::unique_ptr<DeviceBounce>> borrow_device(const PointerInfo &pointer, Sends sends,
                                                        std::optional<StreamOrder> order = {});
    // Whether it can be borrowed now: none may have to be made while queued calls are pending.
    [[nodiscard]] bool may_borrow_device(const PointerInfo &pointer, Sends sends,
                                         std::optional<StreamOrder> order = {});
    // One that is the caller's own, through the host; its context is current.
    Result<std::unique_ptr<DeviceBounce>> make_independent(const std::shared_ptr<Device> &device);
    // Likewise, with slots of device memory, and all events that messages need. To be given back.
    Result<std::unique_ptr<DeviceBounce>> make_for_adapters(const std::shared_ptr<Device> &device);
    Result<std::unique_ptr<HostBounce>> borrow_host();
    // `device` may be null: pageable memory. Else its context is current.
    Result<std::unique_ptr<StagingMemory>> borrow_staging(const std::shared_ptr<Device> &device,
                                                          std::size_t bytes);
    // The device's context is current.
    Result<std::unique_ptr<Scratch>> borrow_scratch(const std::shared_ptr<Device> &device,
                                                    std::size_t bytes);
    // Null is allowed.
    void give_back(std::unique_ptr<Scratch> scratch) noexcept;
    void give_back(std::unique_ptr<DeviceBounce> bounce) noexcept;
    void give_back(std::unique_ptr<HostBounce> bounce) noexcept;
    void give_back(std::unique_ptr<StagingMemory> memory) noexcept;
    // After a driver error in the bounce's context: nothing made in it is used again.
    void discard(std::unique_ptr<DeviceBounce> bounce) noexcept;

    // Made at first use; requires that the driver is loaded.
    [[nodiscard]] Sharing &sharing();
    // Null before the first use.
    [[nodiscard]] Sharing *made_sharing() const noexcept
    {
        return made_sharing_.load(std::memory_order_acquire);
    }
    // The counters of memory that peers share; zeros before the first use.
    [[nodiscard]] PeerCounters peer_counters() const;

private:
    // Memory that nobody has borrowed. What is taken out of it is destroyed without the lock: that
    // may wait for copies that still run.
    struct Idle {
        std::vector<std::unique_ptr<DeviceBounce>> devices;
        std::vector<std::unique_ptr<HostBounce>> hosts;
        std::vector<std::unique_ptr<StagingMemory>> staging;
        std::vector<std::unique_ptr<Scratch>> scratch;
    };

    [[nodiscard]] Result<std::shared_ptr<Device>> device_of_locked(const PointerInfo &pointer,
                                                                   Idle &forgotten);
    // Calls work(Device) with the context of the buffer current.
    template <class Work> Status in_context_of(const PointerInfo &pointer, const Work &work);
    [[nodiscard]] Result<std::unique_ptr<DeviceBounce>> take_device(const PointerInfo &pointer,
                                                                    Slots slots, StreamOrder order);
    [[nodiscard]] Result<std::unique_ptr<DeviceBounce>>
    make_device_bounce(const std::shared_ptr<Device> &device, Slots slots, StreamOrder order);
    [[nodiscard]] Slots slots_of(Sends sends) const noexcept
    {
        return sends == Sends::kDirectIfPossible && direct_.work() ? Slots::kDirect
                                                                   : Slots::kPinned;
    }
    [[nodiscard]] StreamOrder order_or_own(std::optional<StreamOrder> order) const noexcept;
    [[nodiscard]] std::shared_ptr<Device> find_known(const PointerInfo &pointer) const noexcept;
    [[nodiscard]] std::vector<std::unique_ptr<DeviceBounce>>::iterator
    find_idle(const std::shared_ptr<Device> &device, Slots slots, StreamOrder order) noexcept;
    // Not while a queued call is pending.
    [[nodiscard]] Result<PinnedMemory> make_pinned(const Device &device, std::size_t bytes);
    [[nodiscard]] Result<DeviceMemory> make_memory(const Device &device, std::size_t bytes);
    void forget(const std::shared_ptr<Device> &device, Idle &forgotten) noexcept;
    [[nodiscard]] bool knows(const std::shared_ptr<Device> &device) const noexcept;
    [[nodiscard]] bool make_room(std::size_t bytes);

    const Ground ground_;
    MemoryUse memory_use_; // before all that holds memory
    QueuedCalls &queued_ = QueuedCalls::of_process();
    std::atomic<bool> emulation_announced_{false};
    DirectMessages direct_;

    std::atomic<Sharing *> made_sharing_{nullptr}; // sharing_

    mutable std::mutex mutex_; // of all below
    std::vector<std::shared_ptr<Device>> devices_;
    Idle idle_;
    std::optional<Sharing> sharing_;
};

} // namespace hetcoll
