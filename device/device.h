// One CUDA context: RAII handles of what hetcoll makes in it, copies and events on its streams, and
// the kernels.
// Nothing here waits: completion is asked for with Device::is_done(), never by a blocking call.
#pragma once

#include "base/element.h"
#include "base/status.h"
#include "device/context.h"
#include "device/driver.h"
#include "device/kernels.h"
#include "device/memory_use.h"
#include "device/queued_calls.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace hetcoll {

// Move-only owner of a driver object. Destroying it makes the owner's context current. If the
// context is gone, the object went with it, and that is no error. While queued calls are pending
// the object is kept until none is.
template <class Handle> class Owned {
public:
    using Destroy = CUresult (*)(const Driver &, Handle);

    Owned() noexcept = default;
    Owned(ContextRef context, Handle handle, Destroy destroy, HeldBytes held = {}) noexcept
        : context_(std::move(context)), handle_(handle), destroy_(destroy), held_(std::move(held))
    {
    }
    Owned(Owned &&other) noexcept { swap(other); }
    Owned &operator=(Owned &&other) noexcept
    {
        Owned(std::move(other)).swap(*this);
        return *this;
    }
    ~Owned()
    {
        if (context_ == nullptr) {
            return;
        }
        QueuedCalls *const queued = context_->queued();
        if (const QueuedCalls::Waiting waiting(queued); waiting.may()) {
            destroy_now();
            return;
        }
        queued->keep(std::unique_ptr<QueuedCalls::Kept>(new (std::nothrow) Later(*this)));
    }
    [[nodiscard]] Handle get() const noexcept { return handle_; }

private:
    class Later final : public QueuedCalls::Kept {
    public:
        explicit Later(Owned &owned) noexcept { owned_.swap(owned); }

    private:
        Owned owned_;
    };

    void destroy_now() noexcept
    {
        if (context_->is_alive()) {
            const ContextScope scope(context_->driver(), context_->handle());
            if (scope.result() == CUDA_SUCCESS) {
                destroy_(context_->driver(), handle_);
            }
        }
    }
    void swap(Owned &other) noexcept
    {
        std::swap(context_, other.context_);
        std::swap(handle_, other.handle_);
        std::swap(destroy_, other.destroy_);
        held_.swap(other.held_);
    }

    ContextRef context_; // null: nothing is owned
    Handle handle_{};
    Destroy destroy_ = nullptr;
    HeldBytes held_; // of memory
};

using StreamHandle = Owned<CUstream>;
using EventHandle = Owned<CUevent>;
using PinnedMemory = Owned<void *>;      // page-locked host memory that kernels can read
using DeviceMemory = Owned<CUdeviceptr>; // cuMemAlloc

// How our streams are ordered with the application's: after earlier work on the legacy default
// stream, as Open MPI's own are; or with none of them.
enum class StreamOrder : std::uint8_t { kAfterLegacy, kIndependent };

// All calls require the context to be current on this thread (ContextScope), are thread safe, and
// return an error that names the driver call and its code.
class Device {
public:
    // `primary_of` >= 0: `context` came from retain_primary_context(primary_of) and is released at
    // the end. -1: a context of the application. The kernels are loaded when first asked for.
    // `use`, if not null, counts the memory that is made here, and outlives the Device, as `queued`
    // does. Requires that the context exists.
    Device(const Driver &driver, CUcontext context, int primary_of, MemoryUse *use = nullptr,
           StreamOrder order = StreamOrder::kAfterLegacy, QueuedCalls *queued = nullptr);
    ~Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    [[nodiscard]] CUcontext context() const noexcept { return context_->handle(); }
    [[nodiscard]] const ContextRef &context_ref() const noexcept { return context_; }
    // False once the application has destroyed or reset the context, with all that we made in it.
    [[nodiscard]] bool is_alive() const noexcept { return context_->is_alive(); }
    [[nodiscard]] const Driver &driver() const noexcept { return driver_; }
    [[nodiscard]] int primary_of() const noexcept { return primary_of_; }
    // The application's context turned out to be the primary one, which has been retained once
    // more: as if it had been made with that. Not thread safe.
    void take_primary(int ordinal) noexcept { primary_of_ = ordinal; }
    [[nodiscard]] Kernels &kernels() noexcept { return kernels_; }

    // The priority of streams that are made without another one.
    [[nodiscard]] StreamOrder order() const noexcept { return order_; }
    // Highest priority; blocking or not by the order.
    [[nodiscard]] Result<StreamHandle> make_stream() const { return make_stream(order_); }
    [[nodiscard]] Result<StreamHandle> make_stream(StreamOrder order) const;
    [[nodiscard]] Result<EventHandle> make_event() const;                    // without timing
    [[nodiscard]] Result<PinnedMemory> make_pinned(std::size_t bytes) const; // portable
    // Page-locks host memory that is ours: any address range, whole pages of it.
    [[nodiscard]] Result<PinnedMemory> register_host(void *memory, std::size_t bytes) const;
    [[nodiscard]] Result<DeviceMemory> make_memory(std::size_t bytes) const;
    // Device memory that reads as zero to later work on this stream: for a Signal's `arrived`.
    [[nodiscard]] Result<DeviceMemory> make_zeroed(std::size_t bytes, CUstream stream) const;

    // Any mix of device, managed and pinned host memory (unified addressing). Pageable memory works
    // too, but the driver may block until the copy is staged.
    Status copy_async(void *to, const void *from, std::size_t bytes, CUstream stream) const;
    // `rows` pieces of `bytes` each, so far apart on either side; the pieces do not overlap.
    struct Rows {
        std::size_t bytes, rows, to_pitch, from_pitch;
    };
    Status copy_rows_async(void *to, const void *from, const Rows &rows, CUstream stream) const;
    // Elements, but for their padding.
    Status copy_elements_async(void *to, const void *from, std::size_t count, ElementKind kind,
                               CUstream stream) const;
    Status record(const EventHandle &event, CUstream stream) const;
    // True, false, or why it cannot be known (a failed kernel shows here).
    [[nodiscard]] Result<bool> is_done(const EventHandle &event) const;
    // The same for all work on a stream. Code that waits for a flag asks this too: a failed
    // kernel never sets its flag.
    [[nodiscard]] Result<bool> is_idle(CUstream stream) const;
    // Whether the application's work that ours is ordered after is done: by the order, that on the
    // legacy stream or none. Fails while a blocking stream captures.
    [[nodiscard]] Result<bool> earlier_work_done() const;

    // The GPU's address of page-locked memory.
    [[nodiscard]] Result<CUdeviceptr> address_of(const PinnedMemory &memory) const;
    // The stream goes on when the number at `flag`, page-locked memory, has come to `value`,
    // counted round 2^32. By the driver where it can, else by a kernel of one thread, which keeps a
    // multiprocessor's place.
    enum class WaitsBy : std::uint8_t { kDriver, kKernel };
    Status wait_async(WaitsBy by, CUdeviceptr flag, std::uint32_t value, CUstream stream);
    // The stream stores the number there when it gets to it, after all that it has written before.
    Status write_async(WaitsBy by, CUdeviceptr flag, std::uint32_t value, CUstream stream);

private:
    [[nodiscard]] HeldBytes hold_pinned(std::size_t bytes) const noexcept
    {
        return {use_ != nullptr ? &use_->pinned_bytes : nullptr, bytes};
    }

    const Driver &driver_;
    ContextRef context_;
    int primary_of_;
    MemoryUse *use_;
    StreamOrder order_;
    Kernels kernels_;
};

} // namespace hetcoll
