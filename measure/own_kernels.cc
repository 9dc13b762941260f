#include "measure/own_kernels.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace hetcoll {

namespace {

constexpr std::size_t kAlign = 256;

void *address(CUdeviceptr pointer) { return reinterpret_cast<void *>(pointer); }

std::size_t padded(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

} // namespace

Result<std::unique_ptr<OwnKernels>> OwnKernels::create(const Gpu &gpu)
{
    std::unique_ptr<OwnKernels> made(new OwnKernels(gpu));
    if (Status status = made->prepare(); !status.ok()) {
        return status;
    }
    return made;
}

Status OwnKernels::prepare()
{
    auto stream = device_.make_stream();
    if (!stream.ok()) {
        return stream.take_status();
    }
    stream_ = std::move(*stream);
    auto flag = device_.make_pinned(sizeof(std::uint32_t));
    if (!flag.ok()) {
        return flag.take_status();
    }
    flag_ = std::move(*flag);
    auto arrived = device_.make_zeroed(sizeof(std::uint32_t), stream_.get());
    if (!arrived.ok()) {
        return arrived.take_status();
    }
    arrived_ = std::move(*arrived);
    auto at = device_.address_of(flag_);
    if (!at.ok()) {
        return at.take_status();
    }
    *static_cast<std::uint32_t *>(flag_.get()) = 0;
    signal_ = {.flag = static_cast<std::uint32_t *>(address(*at)),
               .arrived = static_cast<std::uint32_t *>(address(arrived_.get()))};
    return device_.kernels().load();
}

Status OwnKernels::grow(std::size_t bytes)
{
    if (bytes <= vectors_bytes_) {
        return {};
    }
    auto made = device_.make_zeroed(bytes, stream_.get());
    if (!made.ok()) {
        return made.take_status();
    }
    vectors_ = std::move(*made);
    vectors_bytes_ = bytes;
    return {};
}

// Returns when the host has seen the flag.
Status OwnKernels::run(int ranks, std::size_t bytes)
{
    constexpr int kPollsPerQuery = 4096;
    ReduceInputs inputs{{}, ranks};
    ReduceOutputs outputs{{}, ranks};
    for (int i = 0; i < ranks; ++i) {
        const auto at = static_cast<std::size_t>(i) * padded(bytes);
        inputs.input[i] = address(vectors_.get() + at);
        outputs.output[i] =
            address(vectors_.get() + static_cast<std::size_t>(ranks) * padded(bytes) + at);
    }
    ++signal_.value;
    if (Status status = device_.kernels().reduce_many_async(ReduceOp::kSum, ElementKind::kFloat32,
                                                            outputs, inputs, bytes / sizeof(float),
                                                            signal_, stream_.get());
        !status.ok()) {
        return status;
    }
    const auto *flag = static_cast<const std::uint32_t *>(flag_.get());
    for (int polls = 1; read_flag(flag) != signal_.value; ++polls) {
        if (polls % kPollsPerQuery == 0) { // a kernel that failed sets no flag
            if (auto idle = device_.is_idle(stream_.get()); !idle.ok()) {
                return idle.take_status();
            }
        }
    }
    return {};
}

Result<double> OwnKernels::median_us(int ranks, std::size_t bytes)
{
    constexpr int kWarmup = 20, kSamples = 301;
    std::vector<double> us(kSamples);
    for (int i = -kWarmup; i < kSamples; ++i) {
        const auto start = std::chrono::steady_clock::now();
        if (Status status = run(ranks, bytes); !status.ok()) {
            return status;
        }
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - start;
        us[static_cast<std::size_t>(std::max(i, 0))] = took.count();
    }
    std::nth_element(us.begin(), us.begin() + kSamples / 2, us.end());
    return us[kSamples / 2];
}

Result<CallFloor> OwnKernels::floor(int ranks, std::size_t bytes)
{
    ranks = std::min(ranks, kMaxArgumentInputs);
    if (Status status = grow(2 * static_cast<std::size_t>(ranks) * padded(std::max(bytes, kAlign)));
        !status.ok()) {
        return status;
    }
    auto launch = median_us(1, 0);
    if (!launch.ok()) {
        return launch.take_status();
    }
    auto kernel = median_us(ranks, bytes);
    if (!kernel.ok()) {
        return kernel.take_status();
    }
    return CallFloor{*launch, *kernel};
}

Status OwnKernels::start_sum(std::size_t bytes)
{
    if (Status status = grow(2 * padded(bytes)); !status.ok()) {
        return status;
    }
    void *const sum = address(vectors_.get());
    return device_.kernels().reduce_async(ReduceOp::kSum, ElementKind::kFloat32, sum, sum,
                                          address(vectors_.get() + padded(bytes)),
                                          bytes / sizeof(float), CU_STREAM_LEGACY);
}

Status OwnKernels::finish() const
{
    return driver_status(device_.driver(), device_.driver().cuStreamSynchronize(CU_STREAM_LEGACY),
                         "cuStreamSynchronize", "waiting for the legacy stream");
}

} // namespace hetcoll
