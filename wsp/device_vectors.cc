// Vectors in the memory of a GPU: added by hetcoll's kernels, on one stream, never copied to the
// host.
#include "device/device.h"
#include "pointer_cache/pointer_cache.h"
#include "wsp/vectors.h"

#include <algorithm>
#include <vector>

namespace hetcoll {
namespace {

CUdeviceptr address(const void *pointer)
{
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

void *pointer(CUdeviceptr memory)
{
    return reinterpret_cast<void *>(static_cast<std::uintptr_t>(memory));
}

class DeviceVectors final : public WaveVectors {
public:
    DeviceVectors(std::unique_ptr<DriverLibrary> library, std::unique_ptr<PointerCache> pointers,
                  const PointerInfo &info, std::size_t count, ElementKind kind)
        : library_(std::move(library)), pointers_(std::move(pointers)), ordinal_(info.device),
          count_(count), kind_(kind)
    {
    }

    // The context, the stream and the kernels.
    Status open(const PointerInfo &info)
    {
        CUcontext context = info.context;
        int primary_of = -1;
        if (context == nullptr) {
            Result<CUcontext> primary = retain_primary_context(driver(), info.device);
            if (!primary.ok()) {
                return primary.take_status();
            }
            context = *primary;
            primary_of = info.device;
        }
        device_ = std::make_unique<Device>(driver(), context, primary_of);
        return in_context([&]() -> Status {
            Result<StreamHandle> stream = device_->make_stream();
            if (!stream.ok()) {
                return stream.take_status();
            }
            stream_ = std::move(*stream);
            return device_->kernels().prepare(ReduceOp::kSum, kind_);
        });
    }

    Result<void *> make() override
    {
        Status status = in_context([&]() -> Status {
            Result<DeviceMemory> memory = device_->make_memory(bytes());
            if (!memory.ok()) {
                return memory.take_status();
            }
            made_.push_back(std::move(*memory));
            return {};
        });
        if (!status.ok()) {
            return status;
        }
        return pointer(made_.back().get());
    }

    Status check(const void *vector) override
    {
        Result<PointerInfo> info = pointers_->find(vector);
        if (!info.ok()) {
            return info.take_status();
        }
        if (info->kind == MemoryKind::kHost) {
            return error(Errc::kInvalid, "the update is host memory and the weights are device "
                                         "memory: give both in the memory of one GPU");
        }
        if (info->kind == MemoryKind::kDevice && info->device != ordinal_) {
            return error(Errc::kInvalid,
                         "the update is memory of GPU %d and the weights of GPU %d: give both in "
                         "the memory of one",
                         info->device, ordinal_);
        }
        return {};
    }

    Status clear(void *to) override
    {
        return in_context([&] {
            return driver_status(driver(),
                                 driver().cuMemsetD8Async(address(to), 0, bytes(), stream_.get()),
                                 "cuMemsetD8Async", "clearing a vector");
        });
    }

    Status add(void *to, std::span<const void *const> in) override
    {
        return in_context([&]() -> Status {
            // In groups of as many as a kernel takes; from the second on it begins with `to`.
            for (std::size_t done = 0; done < in.size();) {
                ReduceInputs inputs{};
                if (done > 0) {
                    inputs.input[inputs.count++] = to;
                }
                while (inputs.count < kMaxArgumentInputs && done < in.size()) {
                    inputs.input[inputs.count++] = in[done++];
                }
                ReduceOutputs outputs{};
                outputs.output[outputs.count++] = to;
                Status status = device_->kernels().reduce_many_async(
                    ReduceOp::kSum, kind_, outputs, inputs, count_, {}, stream_.get());
                if (!status.ok()) {
                    return status;
                }
            }
            return {};
        });
    }

    Status finish() override
    {
        return in_context([&] {
            return driver_status(driver(), driver().cuStreamSynchronize(stream_.get()),
                                 "cuStreamSynchronize", "adding up vectors");
        });
    }

    [[nodiscard]] bool on_device() const noexcept override { return true; }

private:
    [[nodiscard]] const Driver &driver() const noexcept { return *library_->get(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return count_ * element_bytes(kind_); }

    template <class Work> Status in_context(Work work)
    {
        const ContextScope scope(driver(), device_->context());
        if (scope.result() != CUDA_SUCCESS) {
            return driver_status(driver(), scope.result(), "cuCtxPushCurrent",
                                 "entering the context of the weights");
        }
        return work();
    }

    std::unique_ptr<DriverLibrary> library_;
    std::unique_ptr<PointerCache> pointers_;
    int ordinal_;
    std::size_t count_;
    ElementKind kind_;
    std::unique_ptr<Device> device_;
    StreamHandle stream_;
    std::vector<DeviceMemory> made_;
};

} // namespace

Result<std::unique_ptr<WaveVectors>> make_device_vectors(const void *vector, std::size_t count,
                                                         ElementKind kind)
{
    auto library = std::make_unique<DriverLibrary>();
    if (!library->is_loaded_in_process() || library->get() == nullptr) {
        return std::unique_ptr<WaveVectors>(); // nobody in this process can have made device memory
    }
    auto pointers = PointerCache::create(*library, PointerCacheMode::kValidated, {});
    Result<PointerInfo> info = pointers->find(vector);
    if (!info.ok()) {
        return info.take_status();
    }
    if (info->kind == MemoryKind::kHost) {
        return std::unique_ptr<WaveVectors>();
    }
    auto vectors = std::make_unique<DeviceVectors>(std::move(library), std::move(pointers), *info,
                                                   count, kind);
    if (Status status = vectors->open(*info); !status.ok()) {
        return status;
    }
    return std::unique_ptr<WaveVectors>(std::move(vectors));
}

} // namespace hetcoll
