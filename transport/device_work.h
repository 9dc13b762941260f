// A call's work on its GPU with whole vectors: one copy and one kernel at a time, each on its own
// stream. Only finish() waits.
#pragma once

#include "base/element.h"
#include "base/status.h"
#include "cuda_kernels/fixed_point.h"
#include "cuda_kernels/reduction.h"
#include "device/context.h"
#include "device/device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace hetcoll {

class DeviceWork {
public:
    [[nodiscard]] const std::shared_ptr<Device> &device() const noexcept { return device_; }
    [[nodiscard]] Kernels &kernels() noexcept { return device_->kernels(); }
    // How its streams are ordered with the application's.
    [[nodiscard]] StreamOrder order() const noexcept { return order_; }
    // Pinned host memory for small calls, of the `staging_bytes` of make().
    [[nodiscard]] std::byte *staging() noexcept { return staging_; }
    // Pinned host memory for trials of other paths, kTrialBytes long.
    static constexpr std::size_t kTrialBytes = 64;
    [[nodiscard]] std::byte *trial() noexcept
    {
        return reinterpret_cast<std::byte *>(flag_) + kTrialBytes;
    }

    // For start_kernel(), until kernel_done().
    [[nodiscard]] OperandLists &lists() noexcept { return *lists_; }

    // Makes the device's context current until leave(). Functions that need it call enter()
    // themselves. The owner calls leave() before it returns to the application or lets others run,
    // so polling costs one change of context, and waiting for messages none.
    Status enter();
    void leave() noexcept { scope_.reset(); }

    // One copy for the whole call (small and staged calls); one at a time, done when copy_done().
    Status start_copy(void *to, const void *from, std::size_t bytes);
    // The same of elements, but for their padding.
    Status start_copy_elements(void *to, const void *from, std::size_t count, ElementKind kind);
    [[nodiscard]] Result<bool> copy_done(Linger linger = {});
    // Whether all work that the application has put on the legacy stream so far is done. If not,
    // copy_done() will tell.
    [[nodiscard]] Result<bool> start_marker();

    // One kernel for the whole call; one at a time, done when kernel_done(), which looks at a flag
    // in pinned memory.
    Status start_kernel(ReduceOp op, ElementKind kind, const ReduceOutputs &outputs,
                        const ReduceInputs &inputs, std::size_t count);
    // 8-bit floats as floats, or the other way round.
    Status start_convert(FloatConversion conversion, ElementKind kind, void *dst, const void *src,
                         std::size_t count);
    // To and from fixed point. out_of_range() is about the last one, once it is done.
    Status start_to_fixed(ElementKind kind, void *dst, const void *src, std::size_t count,
                          const FixedPoint &how);
    Status start_from_fixed(ElementKind kind, void *dst, std::size_t count, const FixedPoint &how);
    [[nodiscard]] bool out_of_range() const noexcept { return read_flag(out_of_range_) != 0; }
    [[nodiscard]] Result<bool> kernel_done();

protected:
    DeviceWork(std::shared_ptr<Device> device, std::optional<StreamOrder> order)
        : device_(std::move(device)), order_(order.value_or(device_->order()))
    {
    }
    ~DeviceWork() = default; // after finish()
    // Makes all memory, streams and events, in the device's context, which is current. Returns
    // `more_bytes` of pinned memory for the derived class, aligned to 256.
    Result<std::byte *> make(std::size_t staging_bytes, std::size_t more_bytes);
    // Makes the device memory that kernels need to signal their end, if make() could not.
    Status make_arrived();
    // Waits for both streams. Requires that the context is not gone.
    void finish() noexcept;

    [[nodiscard]] CUstream out() const noexcept { return out_.get(); } // of copies and messages
    [[nodiscard]] CUstream in() const noexcept { return in_.get(); }   // of kernels
    // Whether what was recorded is complete. Asking needs no context, but it must not be in a
    // capture that forbids it, and enter() sees to that.
    [[nodiscard]] Result<bool> is_done(const EventHandle &event);

private:
    [[nodiscard]] Result<Signal> next_signal();

    std::shared_ptr<Device> device_; // first: outlives what was made in it
    StreamOrder order_;
    PinnedMemory pinned_; // before the streams: freed after they are gone
    std::byte *staging_ = nullptr;
    OperandLists *lists_ = nullptr;         // pinned
    std::uint32_t *flag_ = nullptr;         // pinned
    std::uint32_t *out_of_range_ = nullptr; // pinned, some bytes behind it
    std::uint32_t flagged_ = 0;             // what the last kernel sets the flag to
    unsigned polls_ = 0;
    DeviceMemory arrived_; // of Signal
    StreamHandle out_, in_;
    EventHandle copy_done_;
    std::optional<ContextScope> scope_;
};

} // namespace hetcoll
