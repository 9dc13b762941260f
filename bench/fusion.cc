#include "bench/fusion.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hetcoll {

namespace {

std::size_t padded(std::size_t bytes)
{
    return (bytes + kFusionPaddingBytes - 1) / kFusionPaddingBytes * kFusionPaddingBytes;
}

struct Tensor {
    Buffer memory;
    std::size_t count, offset; // elements, and bytes into the fusion buffer
    Pattern pattern;
};

class Fused : public Workload {
public:
    Fused(const Gpu *gpu, Buffer fusion, std::vector<Tensor> tensors)
        : gpu_(gpu), fusion_(std::move(fusion)), tensors_(std::move(tensors))
    {
        std::size_t largest = 0;
        for (const Tensor &tensor : tensors_) {
            largest = std::max(largest, tensor.memory.bytes());
        }
        host_.resize(largest);
    }

    Status fill(int rank) override
    {
        const std::vector<char> garbage(fusion_.bytes(), '\xff'); // NaN in float
        Status status = fusion_.write(0, garbage.data(), garbage.size());
        for (const Tensor &tensor : tensors_) {
            fill_input(tensor.pattern, rank, tensor.count, host_.data());
            if (status.ok()) {
                status = tensor.memory.write(0, host_.data(), tensor.memory.bytes());
            }
            if (status.ok()) {
                status = copy(fusion_.data() + tensor.offset, tensor.memory.data(),
                              tensor.memory.bytes());
            }
        }
        return status;
    }

    Result<Outcome> check(int ranks) override
    {
        Outcome outcome;
        for (const Tensor &tensor : tensors_) {
            Status status =
                copy(tensor.memory.data(), fusion_.data() + tensor.offset, tensor.memory.bytes());
            if (status.ok()) {
                status = tensor.memory.read(0, host_.data(), tensor.memory.bytes());
            }
            if (!status.ok()) {
                return status;
            }
            outcome.wrong +=
                compare_result(tensor.pattern, ranks, tensor.count, host_.data()).wrong;
            outcome.checksum =
                outcome.checksum * 31 + checksum(ElementKind::kFloat32, tensor.count, host_.data());
        }
        return outcome;
    }

    [[nodiscard]] WorkloadReduction reduction() const override
    {
        return {MPI_IN_PLACE,    fusion_.data(), fusion_.bytes() / sizeof(float),
                fusion_.bytes(), MPI_FLOAT,      MPI_SUM};
    }

private:
    // Between two buffers of the same kind of memory.
    Status copy(char *to, const char *from, std::size_t bytes) const
    {
        if (gpu_ == nullptr || fusion_.memory() == Memory::kHost) {
            std::memcpy(to, from, bytes);
            return {};
        }
        const Driver &driver = gpu_->driver();
        const auto address = [](const char *pointer) {
            return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
        };
        Status status = driver_status(driver, driver.cuMemcpy(address(to), address(from), bytes),
                                      "cuMemcpy", "copying between a tensor and the fusion buffer");
        if (status.ok()) { // copies inside the GPU return before they are done
            status = driver_status(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize",
                                   "copying between a tensor and the fusion buffer");
        }
        return status;
    }

    const Gpu *gpu_;
    Buffer fusion_;
    std::vector<Tensor> tensors_;
    std::vector<char> host_;
};

} // namespace

std::vector<FusedRange> plan_fusion(std::span<const std::size_t> tensor_counts,
                                    std::size_t element_bytes, std::size_t threshold_bytes)
{
    std::vector<FusedRange> plan;
    std::size_t used = 0;
    for (std::size_t i = 0; i < tensor_counts.size(); ++i) {
        const std::size_t bytes = padded(tensor_counts[i] * element_bytes);
        if (plan.empty() || used + bytes > threshold_bytes) {
            plan.push_back({i, i});
            used = 0;
        }
        used += bytes;
        plan.back().end = i + 1;
    }
    return plan;
}

Result<std::unique_ptr<Workload>> make_fused(const Gpu *gpu, Memory memory,
                                             std::span<const std::size_t> tensor_counts)
{
    std::vector<Tensor> tensors;
    std::size_t bytes = 0;
    for (const std::size_t count : tensor_counts) {
        Result<Buffer> own = Buffer::allocate(gpu, memory, count * sizeof(float));
        if (!own.ok()) {
            return own.take_status();
        }
        const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact,
                              static_cast<std::uint32_t>(tensors.size() + 1)};
        tensors.push_back({std::move(*own), count, bytes, pattern});
        bytes += padded(count * sizeof(float));
    }
    Result<Buffer> fusion = Buffer::allocate(gpu, memory, bytes);
    if (!fusion.ok()) {
        return fusion.take_status();
    }
    return std::unique_ptr<Workload>(
        std::make_unique<Fused>(gpu, std::move(*fusion), std::move(tensors)));
}

} // namespace hetcoll
