// The bounce of a rank whose buffers are device or managed memory. Through the host: chunks are
// copied into pinned slots, and the reduction kernels read received chunks from pinned slots
// directly. Direct, where Open MPI takes device pointers: messages leave from the user's memory and
// land in slots of device memory. With all slots in device memory, for network adapters: they read
// and write nothing but the slots, whatever kind of memory the user has.
#pragma once

#include "transport/bounce.h"
#include "transport/device_work.h"
#include "transport/pull_streams.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

enum class Slots : std::uint8_t { kPinned, kDirect, kDevice };

class DeviceBounce final : public Bounce, public DeviceWork {
public:
    // All memory, streams and events are made here and kept for further calls. The device's context
    // is current. `order`: of the streams, if not the device's own.
    static Result<std::unique_ptr<DeviceBounce>> create(std::shared_ptr<Device> device,
                                                        std::size_t slot_bytes,
                                                        std::size_t staging_bytes, Slots slots,
                                                        std::optional<StreamOrder> order = {});
    ~DeviceBounce() override; // after finish()
    // Waits for all that it has started, unless the context is gone.
    void finish() noexcept;

    [[nodiscard]] bool direct() const noexcept { return slots_ == Slots::kDirect; }
    [[nodiscard]] Slots slots() const noexcept { return slots_; }

    // Makes all streams and events that any call may need, so that divide() makes none.
    static constexpr int kReservedChannels = 32;
    Status reserve();
    [[nodiscard]] bool has_all() const noexcept { return has_all_; }

    Status enter() override { return DeviceWork::enter(); }
    void leave() noexcept override { DeviceWork::leave(); }
    Status divide(int slots, int channels) override;
    [[nodiscard]] std::size_t slot_bytes() const noexcept override { return slot_bytes_; }
    Status start_read(int slot, const void *from, std::size_t bytes) override;
    [[nodiscard]] Result<bool> read_done(int slot) override;
    [[nodiscard]] const void *message(int slot) const noexcept override;
    [[nodiscard]] bool reads_out() const noexcept override { return !direct(); }
    [[nodiscard]] void *landing(int slot) noexcept override;
    Status start_apply(int slot, const Apply &apply) override;
    Status start_fold(int slot, const Pull &fold) override;
    [[nodiscard]] Result<bool> apply_done(int slot) override;
    Status start_pull(int channel, int slot, const Pull &pull) override;
    [[nodiscard]] Result<bool> pull_done(int channel, int slot) override;

private:
    DeviceBounce(std::shared_ptr<Device> device, std::size_t slot_bytes, Slots slots,
                 std::optional<StreamOrder> order)
        : DeviceWork(std::move(device), order), slots_bytes_(kBounceSlots * slot_bytes),
          slot_bytes_(slot_bytes), slots_(slots), pulls_(*this->device(), this->order())
    {
    }

    Status make_events(int slots);

    std::size_t slots_bytes_, slot_bytes_; // of a direction, and of one slot
    Slots slots_;
    DeviceMemory scratch_;
    std::byte *send_slots_ = nullptr;                 // pinned or device memory; unused if direct
    std::byte *recv_slots_ = nullptr;                 // pinned or device memory
    std::vector<EventHandle> read_done_, apply_done_; // by slot
    std::array<const void *, kMaxBounceSlots> source_{};
    PullStreams pulls_;
    bool has_all_ = false; // reserve() has made it
};

} // namespace hetcoll
