// One CUDA context as hetcoll uses it: its kernels and the RAII handles of what we make in it.
// Nothing here waits: completion is asked for with Device::is_done(), never by a blocking call.
#pragma once

#include "base/element.h"
#include "base/status.h"
#include "cuda_kernels/fixed_point.h"
#include "cuda_kernels/reduction.h"
#include "device/driver.h"
#include "device/memory_use.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace hetcoll {

// Makes `context` current on this thread, and restores what was current before; also puts the
// thread into the relaxed stream capture mode, so that our calls do not break a capture of the
// application in another thread. result() is an error, and nothing was changed, if the context is
// gone.
class ContextScope {
public:
    ContextScope(const Driver &driver, CUcontext context) noexcept;
    ~ContextScope();
    ContextScope(const ContextScope &) = delete;
    ContextScope &operator=(const ContextScope &) = delete;

    [[nodiscard]] CUresult result() const noexcept { return result_; }

private:
    const Driver &driver_;
    CUresult result_;
    CUresult exchanged_ = CUDA_ERROR_NOT_SUPPORTED;
    CUstreamCaptureMode capture_mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// The primary context of device `ordinal`, retained (and made, if nobody has yet): for memory that
// has no context of its own. A Device that is given it as `primary_of` context releases it.
[[nodiscard]] Result<CUcontext> retain_primary_context(const Driver &driver, int ordinal);

// A context and its id. After the application destroyed or reset a context, a new one may have the
// same handle, and its objects the handles of ours; ids are never used again. A driver older than
// CUDA 12 has none: then whatever can be entered counts as alive.
struct ContextRef {
    CUcontext handle = nullptr;
    unsigned long long id = 0;

    [[nodiscard]] bool is_alive(const Driver &driver) const noexcept
    {
        unsigned long long now = 0;
        const CUresult result = driver.cuCtxGetId(handle, &now);
        return result == CUDA_ERROR_NOT_SUPPORTED || (result == CUDA_SUCCESS && now == id);
    }
};

// Move-only owner of a driver object. Destroying it makes the owner's context current; a context
// that is gone has taken the object along, and that is no error.
template <class Handle> class Owned {
public:
    using Destroy = CUresult (*)(const Driver &, Handle);

    Owned() noexcept = default;
    Owned(const Driver &driver, ContextRef context, Handle handle, Destroy destroy,
          HeldBytes held = {}) noexcept
        : driver_(&driver), context_(context), handle_(handle), destroy_(destroy),
          held_(std::move(held))
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
        if (driver_ != nullptr && context_.is_alive(*driver_)) {
            const ContextScope scope(*driver_, context_.handle);
            if (scope.result() == CUDA_SUCCESS) {
                destroy_(*driver_, handle_);
            }
        }
    }
    [[nodiscard]] Handle get() const noexcept { return handle_; }

private:
    void swap(Owned &other) noexcept
    {
        std::swap(driver_, other.driver_);
        std::swap(context_, other.context_);
        std::swap(handle_, other.handle_);
        std::swap(destroy_, other.destroy_);
        held_.swap(other.held_);
    }

    const Driver *driver_ = nullptr;
    ContextRef context_;
    Handle handle_{};
    Destroy destroy_ = nullptr;
    HeldBytes held_; // of memory
};

using StreamHandle = Owned<CUstream>;
using EventHandle = Owned<CUevent>;
using PinnedMemory = Owned<void *>;      // page-locked host memory that kernels can read
using DeviceMemory = Owned<CUdeviceptr>; // cuMemAlloc

// Per-context state: the loaded kernels. All calls require the context to be current on this thread
// (ContextScope), are thread safe, and return an error that names the driver call and its code.
class Device {
public:
    // `primary_of` >= 0: `context` came from retain_primary_context(primary_of) and is released at
    // the end. -1: a context of the application. The kernels are loaded at first launch. `use`
    // counts the memory that is made here, if not null, and outlives it.
    Device(const Driver &driver, CUcontext context, int primary_of,
           MemoryUse *use = nullptr) noexcept;
    ~Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    [[nodiscard]] CUcontext context() const noexcept { return context_.handle; }
    [[nodiscard]] const ContextRef &context_ref() const noexcept { return context_; }
    // False once the application has destroyed or reset the context, with all that we made in it.
    [[nodiscard]] bool is_alive() const noexcept { return context_.is_alive(driver_); }
    [[nodiscard]] const Driver &driver() const noexcept { return driver_; }
    [[nodiscard]] int primary_of() const noexcept { return primary_of_; }

    // Highest priority, flags 0: ordered after earlier work on the legacy default stream.
    [[nodiscard]] Result<StreamHandle> make_stream() const;
    [[nodiscard]] Result<EventHandle> make_event() const;                    // without timing
    [[nodiscard]] Result<PinnedMemory> make_pinned(std::size_t bytes) const; // portable
    // Page-locks host memory that is ours: any address range, whole pages of it.
    [[nodiscard]] Result<PinnedMemory> register_host(void *memory, std::size_t bytes) const;
    [[nodiscard]] Result<DeviceMemory> make_memory(std::size_t bytes) const;
    // Zero for what comes later on this stream: a Signal's `arrived`.
    [[nodiscard]] Result<DeviceMemory> make_zeroed(std::size_t bytes, CUstream stream) const;

    // Any mix of device, managed and pinned host memory (unified addressing). Pageable memory works
    // too, but the driver may block until the copy is staged.
    Status copy_async(void *to, const void *from, std::size_t bytes, CUstream stream) const;
    Status record(const EventHandle &event, CUstream stream) const;
    // True, false, or why it cannot be known (a failed kernel shows here).
    [[nodiscard]] Result<bool> is_done(const EventHandle &event) const;
    // The same of all work on a stream: for who waits for a flag that a failed kernel never sets.
    [[nodiscard]] Result<bool> is_idle(CUstream stream) const;

    // Loads the kernels of a call, so that it does not fail for that later: all that
    // reduce_async() of this op and kind needs, those of one shape, the copy kernel.
    Status prepare(ReduceOp op, ElementKind kind);
    Status prepare(ReduceOp op, ElementKind kind, KernelShape shape);
    Status prepare_copy();
    Status prepare_fixed_point(ElementKind kind);

    // dst[i] = op(a[i], b[i]) for memory that the GPU can reach; dst may be a or b.
    Status reduce_async(ReduceOp op, ElementKind kind, void *dst, const void *a, const void *b,
                        std::size_t count, CUstream stream);
    // Every output[i] = op(...op(in0[i], in1[i])..., inN[i]), in this order. An output may be any
    // one of the inputs. Each input is read once, each output written once. `done` is given in any
    // case, also for no elements.
    Status reduce_many_async(ReduceOp op, ElementKind kind, const ReduceOutputs &outputs,
                             const ReduceInputs &inputs, std::size_t count, const Signal &done,
                             CUstream stream);
    // Copies by a kernel, between buffers that do not overlap: for small vectors, whose completion
    // a flag tells sooner than an event does. Everything the GPU can reach, any alignment.
    Status copy_kernel_async(void *to, const void *from, std::size_t bytes, const Signal &done,
                             CUstream stream);

    // Conversions to and from fixed point, see cuda_kernels/fixed_point.h; dst may be src.
    // *out_of_range, which the GPU and the host reach, becomes 1 if an element is.
    Status to_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                          const FixedPoint &how, std::uint32_t *out_of_range, const Signal &done,
                          CUstream stream);
    Status from_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                            const FixedPoint &how, const Signal &done, CUstream stream);

private:
    enum class Image { kReductions, kFixedPoint };
    struct LaunchShape {
        std::size_t lanes;             // how many threads have work
        int blocks_per_multiprocessor; // at most
    };

    [[nodiscard]] Result<CUfunction> kernel(KernelShape shape, ReduceOp op, ElementKind kind);
    [[nodiscard]] Result<CUfunction> find(std::atomic<CUfunction> &known, const char *name,
                                          Image image = Image::kReductions);
    [[nodiscard]] Result<CUfunction> fixed_point_kernel(ElementKind kind, bool back);
    Status load_module(Image image); // requires mutex_
    [[nodiscard]] HeldBytes hold_pinned(std::size_t bytes) const noexcept
    {
        return {use_ != nullptr ? &use_->pinned_bytes : nullptr, bytes};
    }
    Status launch(CUfunction function, LaunchShape shape, void **arguments, CUstream stream,
                  const char *doing) const;

    const Driver &driver_;
    ContextRef context_;
    int primary_of_;
    MemoryUse *use_;
    int multiprocessors_ = 0; // written before the first entry of functions_, copy_, fixed_point_
    std::mutex mutex_;        // of modules_ and find()'s slow path
    std::array<CUmodule, 2> modules_{}; // by Image
    std::array<std::atomic<CUfunction>, kKernelShapeCount * kReduceOpCount * kElementKindCount>
        functions_{};
    std::atomic<CUfunction> copy_{};
    std::array<std::atomic<CUfunction>, 4> fixed_point_{}; // of float and double, there and back
};

} // namespace hetcoll
