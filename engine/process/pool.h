// Resources that calls borrow, kept for the next call: bounces, staging memory, memory that peers
// may map. Nothing is made before a call needs it. Thread safe.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "engine/process/contexts.h"
#include "engine/process/counters.h"
#include "engine/process/direct_probe.h"
#include "engine/process/sharing.h"
#include "engine/types/settings.h"
#include "pointer_cache/pointer_cache.h"
#include "transport/device_bounce.h"
#include "transport/host_bounce.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
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

// How a bounce's messages leave: through its slots, or straight from the call's buffers if Open
// MPI's messages are known to carry device memory.
enum class Sends : std::uint8_t { kBounced, kDirectIfPossible };

class Pool final : public Contexts::Keeper {
public:
    // The contexts that it uses, which outlive the pool.
    struct Ground {
        const hetcoll_settings &settings;
        const Log &log, &node_log; // the latter of one rank a node
        const DriverLibrary &driver;
        Counters &counters;
        Contexts &contexts;
        const DirectMessages &direct;
        const NodeSharing &sharing;
    };
    explicit Pool(const Ground &ground) noexcept;
    ~Pool();
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    // Bytes of a slot of a bounce that is not divided.
    [[nodiscard]] std::size_t slot_bytes() const noexcept;
    // Whether `bytes` more bytes of pinned or device memory can be held: coll_hetcoll_max_memory.
    [[nodiscard]] bool may_hold(std::size_t more_bytes) const noexcept;

    // A bounce in the context of a device or managed pointer. The fast path takes one from the
    // pool. Where calls may be queued it has all that it may ever need, so that it makes nothing
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
    void forget(const std::shared_ptr<Device> &device) noexcept override;

private:
    // Memory that nobody has borrowed. Entries taken out of it are destroyed without the lock: that
    // may wait for copies that still run.
    struct Idle {
        std::vector<std::unique_ptr<DeviceBounce>> devices;
        std::vector<std::unique_ptr<HostBounce>> hosts;
        std::vector<std::unique_ptr<StagingMemory>> staging;
        std::vector<std::unique_ptr<Scratch>> scratch;
    };

    [[nodiscard]] Result<std::unique_ptr<DeviceBounce>> take_device(const PointerInfo &pointer,
                                                                    Slots slots, StreamOrder order);
    [[nodiscard]] Result<std::unique_ptr<DeviceBounce>>
    make_device_bounce(const std::shared_ptr<Device> &device, Slots slots, StreamOrder order);
    [[nodiscard]] Slots slots_of(Sends sends) const noexcept
    {
        return sends == Sends::kDirectIfPossible && ground_.direct.work() ? Slots::kDirect
                                                                          : Slots::kPinned;
    }
    [[nodiscard]] StreamOrder order_or_own(std::optional<StreamOrder> order) const noexcept;
    [[nodiscard]] std::vector<std::unique_ptr<DeviceBounce>>::iterator
    find_idle(const std::shared_ptr<Device> &device, Slots slots, StreamOrder order) noexcept;
    // Not while a queued call is pending.
    [[nodiscard]] Result<PinnedMemory> make_pinned(const Device &device, std::size_t bytes);
    [[nodiscard]] Result<DeviceMemory> make_memory(const Device &device, std::size_t bytes);
    [[nodiscard]] bool make_room(std::size_t bytes);

    const Ground ground_;
    Contexts &contexts_;
    QueuedCalls &queued_;
    std::atomic<bool> emulation_announced_{false};
    Idle idle_; // the contexts' lock is its lock
};

} // namespace hetcoll
