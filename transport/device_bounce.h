// The bounce of a rank whose buffers are device or managed memory. Through the host: chunks are
// copied into pinned slots, and the reduction kernels read received chunks from pinned slots
// directly. Direct, where Open MPI takes device pointers: messages leave from the user's memory and
// land in slots of device memory. With all slots in device memory, for network adapters: they read
// and write nothing but the slots, whatever kind of memory the user has.
#pragma once

#include "device/device.h"
#include "transport/bounce.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

enum class Slots : std::uint8_t { kPinned, kDirect, kDevice };

class DeviceBounce final : public Bounce {
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

    [[nodiscard]] const std::shared_ptr<Device> &device() const noexcept { return device_; }
    [[nodiscard]] bool direct() const noexcept { return slots_ == Slots::kDirect; }
    [[nodiscard]] Slots slots() const noexcept { return slots_; }
    [[nodiscard]] StreamOrder order() const noexcept { return order_; }
    // Pinned host memory for small calls, `staging_bytes` long.
    [[nodiscard]] std::byte *staging() noexcept { return staging_; }

    // The same, for what is no part of a call's vector.
    static constexpr std::size_t kTrialBytes = 64;
    [[nodiscard]] std::byte *trial() noexcept
    {
        return reinterpret_cast<std::byte *>(flag_) + kTrialBytes;
    }

    // Makes all streams and events that any call may need, so that divide() makes none: channels
    // share few streams, because those that wait may share the GPU's queues with others.
    static constexpr int kReservedChannels = 32;
    Status reserve();
    [[nodiscard]] bool has_all() const noexcept { return has_all_; }

    // Makes the device's context current until leave(). Functions that need it call enter()
    // themselves. The owner calls leave() before it returns to the application or lets others run,
    // so polling costs one change of context, and waiting for messages none.
    Status enter() override;
    void leave() noexcept override { scope_.reset(); }

    // One copy for the whole call (small and staged calls); one at a time, done when copy_done().
    Status start_copy(void *to, const void *from, std::size_t bytes);
    // The same of elements, but for their padding.
    Status start_copy_elements(void *to, const void *from, std::size_t count, ElementKind kind);
    [[nodiscard]] Result<bool> copy_done();
    // Whether all work that the application has put on the legacy stream so far is done. If not,
    // copy_done() will tell.
    [[nodiscard]] Result<bool> start_marker();

    // One kernel for the whole call; one at a time, done when kernel_done(), which looks at a flag
    // in pinned memory.
    Status start_kernel(ReduceOp op, ElementKind kind, const ReduceOutputs &outputs,
                        const ReduceInputs &inputs, std::size_t count);
    Status start_copy_kernel(void *to, const void *from, std::size_t bytes);
    // 8-bit floats as floats, or the other way round.
    Status start_convert(FloatConversion conversion, ElementKind kind, void *dst, const void *src,
                         std::size_t count);
    // To and from fixed point. out_of_range() is about the last one, once it is done.
    Status start_to_fixed(ElementKind kind, void *dst, const void *src, std::size_t count,
                          const FixedPoint &how);
    Status start_from_fixed(ElementKind kind, void *dst, std::size_t count, const FixedPoint &how);
    [[nodiscard]] bool out_of_range() const noexcept { return read_flag(out_of_range_) != 0; }
    [[nodiscard]] Result<bool> kernel_done();

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
    using PullEvents =
        std::array<EventHandle, kWindowSlots>; // that tell which of its pulls are done

    DeviceBounce(std::shared_ptr<Device> device, std::size_t slot_bytes, Slots slots,
                 StreamOrder order)
        : device_(std::move(device)), slots_bytes_(kBounceSlots * slot_bytes),
          slot_bytes_(slot_bytes), slots_(slots), order_(order)
    {
    }

    [[nodiscard]] Result<bool> is_done(const EventHandle &event);
    Status make_arrived();
    [[nodiscard]] Result<Signal> next_signal();
    Status make_events(std::vector<EventHandle> &events, int count) const;
    Status make_channels(std::size_t channels);

    std::shared_ptr<Device> device_;       // first: outlives what was made in it
    std::size_t slots_bytes_, slot_bytes_; // of a direction, and of one slot
    Slots slots_;
    StreamOrder order_;
    PinnedMemory pinned_; // before the streams: freed after they are gone
    DeviceMemory scratch_;
    std::uint32_t *flag_ = nullptr;         // pinned
    std::uint32_t *out_of_range_ = nullptr; // pinned, some bytes behind it
    std::uint32_t flagged_ = 0;             // what the last kernel sets the flag to
    unsigned polls_ = 0;
    DeviceMemory arrived_; // of Signal
    std::byte *staging_ = nullptr;
    std::byte *send_slots_ = nullptr; // pinned or device memory; unused if direct
    std::byte *recv_slots_ = nullptr; // pinned or device memory
    StreamHandle out_, in_;
    std::vector<EventHandle> read_done_, apply_done_; // by slot
    EventHandle copy_done_;
    std::vector<PullEvents> pulls_;
    // Of pulls, each for one channel. Where there are fewer channels, the steps of one channel take
    // turns: several steps use different links at once, while one step's chunks come one after the
    // other.
    std::vector<StreamHandle> pull_streams_;
    bool shares_pull_streams_ = false; // they are fewer than that
    bool has_all_ = false;             // reserve() has made it
    std::size_t streams_per_channel_ = 1;
    std::array<const void *, kMaxBounceSlots> source_{};
    std::optional<ContextScope> scope_;
};

} // namespace hetcoll
