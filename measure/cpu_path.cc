#include "measure/cpu_path.h"

#include "device/host_view.h"
#include "engine/types/settings.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

namespace hetcoll {
namespace {

constexpr std::size_t kFirstBytes = 8, kLastBytes = HETCOLL_MAX_SMALL_LIMIT;
constexpr int kRounds = 200;

// The median of a few hundred times; negative: it does not work.
template <class Work> std::int64_t median_ns(const Work &work)
{
    std::vector<std::int64_t> times;
    for (int round = 0; round < kRounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        if (!work()) {
            return -1;
        }
        times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::steady_clock::now() - start)
                            .count());
    }
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    return std::max<std::int64_t>(times[kRounds / 2], 1);
}

class Copies {
public:
    // As a small call copies.
    explicit Copies(const Device &device) : device_(device) {}
    [[nodiscard]] Status make()
    {
        Status status = keep(device_.make_stream(), stream_);
        status = status.ok() ? keep(device_.make_event(), done_) : std::move(status);
        status = status.ok() ? keep(device_.make_pinned(kLastBytes), pinned_) : std::move(status);
        return status.ok() ? keep(device_.make_memory(kLastBytes), memory_) : std::move(status);
    }
    [[nodiscard]] bool copy(bool to_device, std::size_t bytes) const
    {
        void *const device = reinterpret_cast<void *>(memory_.get());
        if (!device_
                 .copy_async(to_device ? device : pinned_.get(), to_device ? pinned_.get() : device,
                             bytes, stream_.get())
                 .ok() ||
            !device_.record(done_, stream_.get()).ok()) {
            return false;
        }
        for (;;) {
            const Result<bool> done = device_.is_done(done_);
            if (!done.ok() || *done) {
                return done.ok();
            }
        }
    }
    [[nodiscard]] CUdeviceptr memory() const { return memory_.get(); }
    [[nodiscard]] std::byte *pinned() const { return static_cast<std::byte *>(pinned_.get()); }

private:
    template <class Handle> static Status keep(Result<Handle> made, Handle &to)
    {
        if (!made.ok()) {
            return made.take_status();
        }
        to = std::move(*made);
        return {};
    }

    const Device &device_;
    StreamHandle stream_;
    EventHandle done_;
    PinnedMemory pinned_;
    DeviceMemory memory_;
};

// Null: there is no way, or it shows other memory.
std::unique_ptr<HostView> map(const Gpu &gpu, GdrLibrary *gdr, const Copies &copies)
{
    const HostView::Methods methods{
        .gdr = gdr, .dma_buf = HostView::maps_dma_bufs(gpu.driver(), gpu.ordinal())};
    auto view = HostView::map(
        gpu.driver(), methods,
        {.ordinal = gpu.ordinal(), .buffer_id = 0, .first = copies.memory(), .bytes = kLastBytes});
    if (!view.ok()) {
        return nullptr;
    }
    std::vector<std::byte> pattern(kLastBytes);
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        pattern[i] = static_cast<std::byte>(i * 7 + i / 256);
    }
    std::memset(copies.pinned(), 0, kLastBytes);
    const bool works = copies.copy(true, kLastBytes) &&
                       (*view)->write(copies.memory(), pattern.data(), kLastBytes) &&
                       copies.copy(false, kLastBytes) &&
                       std::memcmp(copies.pinned(), pattern.data(), kLastBytes) == 0;
    return works ? std::move(*view) : nullptr;
}

CpuSample measure(const HostView &view, const Copies &copies, CUcontext context, bool writes,
                  std::size_t bytes)
{
    std::vector<std::byte> host(bytes);
    CpuSample sample{.writes = writes, .bytes = static_cast<std::int64_t>(bytes)};
    sample.cpu_ns = median_ns([&] {
        return writes ? view.write(copies.memory(), host.data(), bytes) &&
                            (!view.needs_flush() || view.flush(context))
                      : view.read(host.data(), copies.memory(), bytes);
    });
    sample.copy_ns = median_ns([&] { return copies.copy(writes, bytes); });
    return sample;
}

} // namespace

Result<std::vector<CpuSample>> measure_cpu_path(int local_rank)
{
    std::vector<CpuSample> samples;
    auto gpu = Gpu::open(local_rank);
    if (!gpu.ok()) {
        return gpu.take_status();
    }
    auto gdr = GdrLibrary::open(); // an error only says that it is not there
    const Device device((*gpu)->driver(), (*gpu)->context(), -1);
    Copies copies(device);
    if (Status made = copies.make(); !made.ok()) {
        return made;
    }
    const auto view = map(**gpu, gdr.ok() ? gdr->get() : nullptr, copies);
    for (std::size_t bytes = kFirstBytes; view != nullptr && bytes <= kLastBytes; bytes *= 2) {
        for (const bool writes : {false, true}) {
            samples.push_back(measure(*view, copies, (*gpu)->context(), writes, bytes));
            if (samples.back().cpu_ns < 0 || samples.back().copy_ns < 0) {
                return error(Errc::kDriver, "copies of %zu bytes fail", bytes);
            }
        }
    }
    return samples;
}

} // namespace hetcoll
