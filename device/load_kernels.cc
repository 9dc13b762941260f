// The kernels of a context: loaded once, all of them.
#include "device/device.h"

#include <algorithm>

namespace hetcoll {
namespace {

std::size_t kernel_index(KernelShape shape, ReduceOp op, ElementKind kind)
{
    return (static_cast<std::size_t>(shape) * kReduceOpCount + static_cast<std::size_t>(op)) *
               kElementKindCount +
           static_cast<std::size_t>(kind);
}

} // namespace

Status Device::load_kernels()
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

Result<CUfunction> Device::kernel(KernelShape shape, ReduceOp op, ElementKind kind)
{
    if (Status status = load_kernels(); !status.ok()) {
        return status;
    }
    const CUfunction function = kernels_.reductions[kernel_index(shape, op, kind)];
    if (function == nullptr) {
        return error(Errc::kInvalid, "MPI does not define %s of %s", op_name(op),
                     element_name(kind));
    }
    return function;
}

Result<CUfunction> Device::fixed_point_kernel(ElementKind kind, Conversion conversion)
{
    if (Status status = load_kernels(); !status.ok()) {
        return status;
    }
    return kernels_.fixed_point[fixed_point_index(kind, conversion)];
}

Status Device::load_all()
{
    Status status;
    const auto load = [&](CUfunction &function, const char *name, Image image) {
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
                load(kernels_.reductions[kernel_index(s, o, k)], kernel_name(s, o, k),
                     Image::kReductions);
            }
        }
    }
    load(kernels_.copy, kCopyKernelName, Image::kReductions);
    load(kernels_.wait, kWaitKernelName, Image::kReductions);
    for (const ElementKind kind : {ElementKind::kFloat8E4m3, ElementKind::kFloat8E5m2}) {
        for (const auto conversion : {FloatConversion::kWiden, FloatConversion::kNarrow}) {
            load(kernels_.floats[floats_index(kind, conversion)],
                 float_kernel_name(conversion, kind), Image::kReductions);
        }
    }
    for (const ElementKind kind : {ElementKind::kFloat32, ElementKind::kFloat64}) {
        load(kernels_.fixed_point[fixed_point_index(kind, Conversion::kToFixed)],
             to_fixed_kernel_name(kind), Image::kFixedPoint);
        load(kernels_.fixed_point[fixed_point_index(kind, Conversion::kFromFixed)],
             from_fixed_kernel_name(kind), Image::kFixedPoint);
    }
    return status;
}

Status Device::find(CUfunction &function, const char *name, Image image)
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

Status Device::load_module(Image image)
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

} // namespace hetcoll
