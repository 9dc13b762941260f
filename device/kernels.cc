#include "device/kernels.h"

#include <algorithm>
#include <numeric>

namespace hetcoll {
namespace {

constexpr unsigned kThreads = 512; // as the kernels' launch bounds allow
// Blocks that a multiprocessor of 2048 threads has room for. The many-input kernels take twice the
// registers, to have many loads in flight.
constexpr int kFull = 4;
constexpr int kFullOfMany = 2;

constexpr const char *kReducing = "reducing a part of a buffer";
constexpr const char *kConverting = "converting a buffer to or from fixed point";

std::uintptr_t bits(const void *pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

std::size_t kernel_index(KernelShape shape, ReduceOp op, ElementKind kind)
{
    return (static_cast<std::size_t>(shape) * kReduceOpCount + static_cast<std::size_t>(op)) *
               kElementKindCount +
           static_cast<std::size_t>(kind);
}

std::size_t floats_index(FloatConversion conversion, ElementKind kind)
{
    return (kind == ElementKind::kFloat8E5m2 ? 2u : 0u) +
           (conversion == FloatConversion::kNarrow ? 1u : 0u);
}

std::size_t fixed_index(ElementKind kind) { return kind == ElementKind::kFloat64 ? 1 : 0; }

// How many threads have work: one per 16 bytes if all addresses allow it, else one per element.
std::size_t threads_for(std::uintptr_t all_bits, std::size_t count, ElementKind kind)
{
    const std::size_t bytes = element_bytes(kind);
    return all_bits % 16 == 0 && bytes <= 16 ? (count * bytes + 15) / 16 : count;
}

// The same for a copy, whose words are as wide as the two addresses allow.
std::size_t threads_for_copy(std::uintptr_t differing, std::size_t bytes)
{
    const std::size_t word = (differing | 16) & -(differing | 16);
    return bytes / word + 1; // and one for less than a word
}

} // namespace

Status Kernels::load()
{
    if (loaded_.load(std::memory_order_acquire)) {
        return {};
    }
    const std::lock_guard lock(mutex_);
    if (loaded_.load(std::memory_order_relaxed)) {
        return {};
    }
    if (!unloadable_.ok()) {
        return error(unloadable_.code(), "%s", unloadable_.message().c_str());
    }
    Status status = load_all();
    if (!status.ok() && status.code() == Errc::kUnsupported) {
        unloadable_ = error(status.code(), "%s", status.message().c_str());
    }
    loaded_.store(status.ok(), std::memory_order_release);
    return status;
}

void Kernels::unload(const Context &context) noexcept
{
    const bool loaded = std::any_of(modules_.begin(), modules_.end(),
                                    [](CUmodule module) { return module != nullptr; });
    if (!loaded || !context.is_alive()) {
        return;
    }
    const ContextScope scope(driver_, context.handle());
    for (CUmodule module : modules_) {
        if (module != nullptr && scope.result() == CUDA_SUCCESS) {
            driver_.cuModuleUnload(module);
        }
    }
}

Result<CUfunction> Kernels::reduction(KernelShape shape, ReduceOp op, ElementKind kind)
{
    if (Status status = load(); !status.ok()) {
        return status;
    }
    const CUfunction function = functions_.reductions[kernel_index(shape, op, kind)];
    if (function == nullptr) {
        return error(Errc::kInvalid, "MPI does not define %s of %s", op_name(op),
                     element_name(kind));
    }
    return function;
}

Status Kernels::load_all()
{
    Status status;
    const auto add = [&](CUfunction &function, const char *name, Image image) {
        if (status.ok() && name != nullptr) { // MPI does not define every op of every kind
            status = find(function, name, image);
        }
    };
    for (int shape = 0; shape < kKernelShapeCount; ++shape) {
        for (int op = 0; op < kReduceOpCount; ++op) {
            for (int kind = 0; kind < kElementKindCount; ++kind) {
                const auto s = static_cast<KernelShape>(shape);
                const auto o = static_cast<ReduceOp>(op);
                const auto k = static_cast<ElementKind>(kind);
                add(functions_.reductions[kernel_index(s, o, k)], kernel_name(s, o, k),
                    Image::kReductions);
            }
        }
    }
    add(functions_.copy, kCopyKernelName, Image::kReductions);
    add(functions_.wait, kWaitKernelName, Image::kReductions);
    for (const ElementKind kind : {ElementKind::kFloat8E4m3, ElementKind::kFloat8E5m2}) {
        for (const auto conversion : {FloatConversion::kWiden, FloatConversion::kNarrow}) {
            add(functions_.floats[floats_index(conversion, kind)],
                float_kernel_name(conversion, kind), Image::kReductions);
        }
    }
    for (const ElementKind kind : {ElementKind::kFloat32, ElementKind::kFloat64}) {
        add(functions_.to_fixed[fixed_index(kind)], to_fixed_kernel_name(kind), Image::kFixedPoint);
        add(functions_.from_fixed[fixed_index(kind)], from_fixed_kernel_name(kind),
            Image::kFixedPoint);
    }
    return status;
}

Status Kernels::find(CUfunction &function, const char *name, Image image)
{
    const CUmodule &module = modules_[static_cast<std::size_t>(image)];
    if (module == nullptr) {
        if (Status status = load_module(image); !status.ok()) {
            return status;
        }
    }
    return driver_status(driver_, driver_.cuModuleGetFunction(&function, module, name),
                         "cuModuleGetFunction", name);
}

Status Kernels::load_module(Image image)
{
    CUdevice device = 0;
    int multiprocessors = 0;
    CUresult result = driver_.cuCtxGetDevice(&device);
    if (result == CUDA_SUCCESS) {
        result = driver_.cuDeviceGetAttribute(&multiprocessors,
                                              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    }
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuDeviceGetAttribute",
                             "asking for the number of multiprocessors");
    }
    multiprocessors_ = std::max(1, multiprocessors);
    CUmodule module = nullptr;
    result = driver_.cuModuleLoadData(&module, image == Image::kReductions ? kernel_image()
                                                                           : fixed_point_image());
    if (result == CUDA_SUCCESS) {
        modules_[static_cast<std::size_t>(image)] = module;
    }
    return driver_status(driver_, result, "cuModuleLoadData", "loading hetcoll's kernels");
}

Status Kernels::prepare(ReduceOp op, ElementKind kind)
{
    auto function = reduction(KernelShape::kManyInput, op, kind);
    return function.ok() ? Status() : function.take_status();
}

Status Kernels::reduce_async(ReduceOp op, ElementKind kind, void *dst, const void *a, const void *b,
                             std::size_t count, CUstream stream)
{
    if (count == 0) {
        return {};
    }
    const bool in_place = dst == a;
    auto function =
        reduction(in_place ? KernelShape::kTwoInput : KernelShape::kThreeInput, op, kind);
    if (!function.ok()) {
        return function.take_status();
    }
    const std::size_t threads = threads_for(bits(dst) | bits(a) | bits(b), count, kind);
    void *two[] = {&dst, &b, &count};
    void *three[] = {&dst, &a, &b, &count};
    return launch(*function, {threads, kFull}, in_place ? two : three, stream, kReducing);
}

Status Kernels::reduce_many_async(ReduceOp op, ElementKind kind, const ReduceOutputs &outputs,
                                  const ReduceInputs &inputs, std::size_t count, const Signal &done,
                                  CUstream stream)
{
    if (count == 0 && done.flag == nullptr) {
        return {};
    }
    auto function = reduction(KernelShape::kManyInput, op, kind);
    if (!function.ok()) {
        return function.take_status();
    }
    const ListedInputs in = listed(inputs);
    const ListedOutputs out = listed(outputs);
    const auto union_of_bits = [](std::uintptr_t all, const void *one) { return all | bits(one); };
    const std::uintptr_t all_bits =
        std::accumulate(in.input, in.input + in.count, std::uintptr_t{0}, union_of_bits) |
        std::accumulate(out.output, out.output + out.count, std::uintptr_t{0}, union_of_bits);
    // The driver reads the arguments before the launch returns; its prototype lacks the const.
    void *arguments[] = {const_cast<ReduceOutputs *>(&outputs), const_cast<ReduceInputs *>(&inputs),
                         &count, const_cast<Signal *>(&done)};
    return launch(*function, {threads_for(all_bits, count, kind), kFullOfMany}, arguments, stream,
                  kReducing);
}

Status Kernels::copy_async(void *to, const void *from, std::size_t bytes, const Signal &done,
                           CUstream stream)
{
    if (bytes == 0 && done.flag == nullptr) {
        return {};
    }
    if (Status status = load(); !status.ok()) {
        return status;
    }
    void *arguments[] = {&to, &from, &bytes, const_cast<Signal *>(&done)};
    return launch(functions_.copy, {threads_for_copy(bits(to) ^ bits(from), bytes), kFull},
                  arguments, stream, "copying a part of a buffer");
}

Status Kernels::wait_async(CUdeviceptr flag, std::uint32_t value, CUstream stream)
{
    if (Status status = load(); !status.ok()) {
        return status;
    }
    void *arguments[] = {&flag, &value};
    return driver_status(
        driver_,
        driver_.cuLaunchKernel(functions_.wait, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr),
        "cuLaunchKernel", "making a stream wait for a queued call");
}

Status Kernels::convert_floats_async(FloatConversion conversion, ElementKind kind, void *dst,
                                     const void *src, std::size_t count, const Signal &done,
                                     CUstream stream)
{
    if (count == 0 && done.flag == nullptr) {
        return {};
    }
    if (Status status = load(); !status.ok()) {
        return status;
    }
    void *arguments[] = {&dst, &src, &count, const_cast<Signal *>(&done)};
    return launch(functions_.floats[floats_index(conversion, kind)], {count, kFull}, arguments,
                  stream, "making floats of a buffer, or of floats what it holds");
}

Status Kernels::to_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                               const FixedPoint &how, std::uint32_t *out_of_range,
                               const Signal &done, CUstream stream)
{
    if (Status status = load(); !status.ok()) {
        return status;
    }
    void *arguments[] = {&dst,          &src,
                         &count,        const_cast<FixedPoint *>(&how),
                         &out_of_range, const_cast<Signal *>(&done)};
    return launch(functions_.to_fixed[fixed_index(kind)], {count, kFull}, arguments, stream,
                  kConverting);
}

Status Kernels::from_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                                 const FixedPoint &how, const Signal &done, CUstream stream)
{
    if (Status status = load(); !status.ok()) {
        return status;
    }
    void *arguments[] = {&dst, &src, &count, const_cast<FixedPoint *>(&how),
                         const_cast<Signal *>(&done)};
    return launch(functions_.from_fixed[fixed_index(kind)], {count, kFull}, arguments, stream,
                  kConverting);
}

Status Kernels::launch(CUfunction function, LaunchShape shape, void **arguments, CUstream stream,
                       const char *doing) const
{
    const std::size_t wanted = std::max<std::size_t>(1, (shape.threads + kThreads - 1) / kThreads);
    const int fitting = shape.blocks_per_multiprocessor * multiprocessors_;
    const int most = most_blocks_ > 0 ? std::min(most_blocks_, fitting) : fitting;
    const auto blocks = static_cast<unsigned>(std::min(wanted, static_cast<std::size_t>(most)));
    return driver_status(driver_,
                         driver_.cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, stream,
                                                arguments, nullptr),
                         "cuLaunchKernel", doing);
}

} // namespace hetcoll
