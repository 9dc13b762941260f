// hetcoll's kernels in one CUDA context: loaded once, all of them, and launched on its streams.
#pragma once

#include "base/element.h"
#include "base/status.h"
#include "cuda_kernels/fixed_point.h"
#include "cuda_kernels/reduction.h"
#include "device/context.h"
#include "device/driver.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace hetcoll {

// All calls require the context to be current on this thread (ContextScope), are thread safe, and
// return an error that names the driver call and its code.
class Kernels {
public:
    explicit Kernels(const Driver &driver) noexcept : driver_(driver) {}

    // Loads all kernels, if they are not: loading one may wait for the whole device, so no later
    // call loads any. prepare() and all launches load them too. kUnsupported: they cannot be loaded
    // here, and no later call tries again.
    Status load();
    // Unloads them from `context`, theirs, which need not be current. If it is gone, so are they.
    void unload(const Context &context) noexcept;
    // Whether there is a kernel for an op and kind, so that a call cannot fail for lack of it
    // later.
    Status prepare(ReduceOp op, ElementKind kind);
    // Launches later kernels with at most `most` blocks, which leaves the other multiprocessors to
    // the program: a slow link needs few. 0: as many as fit. Not thread safe.
    void limit_blocks(int most) noexcept { most_blocks_ = most; }

    // dst[i] = op(a[i], b[i]) for memory that the GPU can reach; dst may be a or b.
    Status reduce_async(ReduceOp op, ElementKind kind, void *dst, const void *a, const void *b,
                        std::size_t count, CUstream stream);
    // Every output[i] = op(...op(in0[i], in1[i])..., inN[i]), in this order. An output may be any
    // one of the inputs. Each input is read once, each output written once. `done` is signalled
    // even if there are no elements.
    Status reduce_many_async(ReduceOp op, ElementKind kind, const ReduceOutputs &outputs,
                             const ReduceInputs &inputs, std::size_t count, const Signal &done,
                             CUstream stream);
    // Copies at any alignment between buffers that the GPU can reach and that do not overlap. For
    // small vectors: a flag tells of completion sooner than an event does.
    Status copy_async(void *to, const void *from, std::size_t bytes, const Signal &done,
                      CUstream stream);
    // One thread waits until the number at `flag` has come to `value`: see Device::wait_async().
    Status wait_async(CUdeviceptr flag, std::uint32_t value, CUstream stream);

    // 8-bit floats as floats, and back, see cuda_kernels/reduction.h.
    Status convert_floats_async(FloatConversion conversion, ElementKind kind, void *dst,
                                const void *src, std::size_t count, const Signal &done,
                                CUstream stream);

    // Conversions to and from fixed point, see cuda_kernels/fixed_point.h; dst may be src.
    // *out_of_range becomes 1 if an element is out of range; the GPU and the host must both reach
    // it.
    Status to_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                          const FixedPoint &how, std::uint32_t *out_of_range, const Signal &done,
                          CUstream stream);
    Status from_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                            const FixedPoint &how, const Signal &done, CUstream stream);

private:
    enum class Image { kReductions, kFixedPoint };
    struct LaunchShape {
        std::size_t threads;           // how many threads have work
        int blocks_per_multiprocessor; // at most
    };
    struct Functions {
        std::array<CUfunction, kKernelShapeCount * kReduceOpCount * kElementKindCount> reductions{};
        CUfunction copy = nullptr;
        CUfunction wait = nullptr;
        std::array<CUfunction, 4> floats{};                 // of the 8-bit floats, by conversion
        std::array<CUfunction, 2> to_fixed{}, from_fixed{}; // of float and double
    };

    [[nodiscard]] Result<CUfunction> reduction(KernelShape shape, ReduceOp op, ElementKind kind);
    Status load_all(); // this and the next two require mutex_
    Status find(CUfunction &function, const char *name, Image image);
    Status load_module(Image image);
    Status launch(CUfunction function, LaunchShape shape, void **arguments, CUstream stream,
                  const char *doing) const;

    const Driver &driver_;
    int most_blocks_ = 0;             // 0: as many as fit
    std::atomic<bool> loaded_{false}; // all below is there, and stays
    std::mutex mutex_;                // of it until then
    Status unloadable_;               // why it never will be
    int multiprocessors_ = 0;
    std::array<CUmodule, 2> modules_{}; // by Image
    Functions functions_;
};

} // namespace hetcoll
