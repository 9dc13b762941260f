// The path `cpu` on this GPU (docs/internals/latency.md): whether the processor can map device
// memory, what that costs, how long it takes to read and write a few bytes, and whether both sides
// see each other's writes in the order that the path counts on.
#include "device/host_view.h"
#include "measure/cpu_path.h"
#include "measure/micro.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hetcoll {
namespace {

constexpr std::size_t kBytes = 65'536;
constexpr int kRounds = 10'000, kMaps = 20;

double us_of(const std::function<void()> &work)
{
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
}

double median_us(int times, const std::function<void()> &work)
{
    std::vector<double> all;
    for (int i = 0; i < times; ++i) {
        all.push_back(us_of(work));
    }
    return median(all);
}

class Bench {
public:
    explicit Bench(const Gpu &gpu)
        : gpu_(gpu), device_(gpu.driver(), gpu.context(), -1), gdr_(GdrLibrary::open())
    {
        if (gdr_.ok()) {
            methods_.gdr = gdr_->get();
        } else {
            std::printf("# gdrcopy     no: %s\n", gdr_.status().message().c_str());
        }
        methods_.dma_buf = HostView::maps_dma_bufs(gpu.driver(), gpu.ordinal());
        std::printf("# dma_buf     %s\n",
                    methods_.dma_buf ? "yes" : "no: driver below 13.3, or GPU");
        memory_ = require(device_.make_memory(kBytes));
        stream_ = require(device_.make_stream());
        pinned_ = require(device_.make_pinned(kBytes));
    }

    [[nodiscard]] Result<std::unique_ptr<HostView>> map() const
    {
        return HostView::map(
            gpu_.driver(), methods_,
            {.ordinal = gpu_.ordinal(), .buffer_id = 0, .first = memory_.get(), .bytes = kBytes});
    }

    void time_mapping() const
    {
        std::vector<double> maps, unmaps;
        for (int i = 0; i < kMaps; ++i) {
            std::unique_ptr<HostView> view;
            maps.push_back(us_of([&] { view = require(map()); }));
            unmaps.push_back(us_of([&] { view.reset(); }));
        }
        std::printf("map           %9.2f us\nunmap         %9.2f us\n", median(maps),
                    median(unmaps));
    }

    void time_questions() const
    {
        const Driver &driver = gpu_.driver();
        unsigned long long id = 0;
        CUcontext current = nullptr;
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
        const std::pair<const char *, std::function<void()>> questions[] = {
            {"BUFFER_ID",
             [&] {
                 driver.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory_.get());
             }},
            {"current", [&] { driver.cuCtxGetCurrent(&current); }},
            {"capture mode", [&] { driver.cuThreadExchangeStreamCaptureMode(&mode); }},
            {"stream", [&] { driver.cuStreamQuery(CU_STREAM_LEGACY); }},
            {"all of stream",
             [&] { static_cast<void>(is_legacy_stream_idle(driver, gpu_.context())); }},
        };
        for (const auto &[name, question] : questions) {
            std::printf("%-13s %9.2f us\n", name, median_us(1'000, question));
        }
    }

    // Work that is launched after the processor has written sees that.
    [[nodiscard]] int late_writes(const HostView &view) const
    {
        int wrong = 0;
        auto *const seen = static_cast<volatile unsigned *>(pinned_.get());
        for (unsigned round = 1; round <= kRounds; ++round) {
            require_written(view.write(memory_.get(), &round, sizeof round));
            require(device_.copy_async(pinned_.get(), pointer(), sizeof round, stream_.get()));
            wait(stream_.get());
            wrong += *seen != round ? 1 : 0;
        }
        return wrong;
    }

    // The processor sees what the GPU had written when the legacy stream was idle.
    [[nodiscard]] int late_reads(const HostView &view) const
    {
        int wrong = 0;
        for (unsigned round = 1; round <= kRounds; ++round) {
            const auto byte = static_cast<unsigned char>(round);
            require(gpu_.driver().cuMemsetD8Async(memory_.get(), byte, 64, CU_STREAM_LEGACY),
                    "cuMemsetD8Async");
            while (!require(is_legacy_stream_idle(gpu_.driver(), gpu_.context()))) {
            }
            unsigned char seen[64];
            require_written(view.read(seen, memory_.get(), sizeof seen));
            wrong += seen[0] != byte || seen[63] != byte ? 1 : 0;
        }
        return wrong;
    }

private:
    [[nodiscard]] void *pointer() const { return reinterpret_cast<void *>(memory_.get()); }
    static void require_written(bool worked)
    {
        require(worked ? Status() : error(Errc::kDriver, "the mapping refuses"));
    }
    void wait(CUstream stream) const
    {
        while (!require(device_.is_idle(stream))) {
        }
    }

    const Gpu &gpu_;
    Device device_;
    Result<std::unique_ptr<GdrLibrary>> gdr_;
    HostView::Methods methods_;
    DeviceMemory memory_;
    StreamHandle stream_;
    PinnedMemory pinned_;
};

void print_samples(const std::vector<CpuSample> &samples, bool judged)
{
    std::printf("# bytes   read us   copy us  write us   copy us\n");
    for (std::size_t i = 0; i + 1 < samples.size(); i += 2) {
        const CpuSample &read = samples[i], &write = samples[i + 1];
        std::printf("%7lld %9.2f %9.2f %9.2f %9.2f\n", static_cast<long long>(read.bytes),
                    static_cast<double>(read.cpu_ns) / 1e3, static_cast<double>(read.copy_ns) / 1e3,
                    static_cast<double>(write.cpu_ns) / 1e3,
                    static_cast<double>(write.copy_ns) / 1e3);
    }
    const auto limits = limits_of(samples);
    if (!limits) {
        return;
    }
    std::printf("# limits      read %zu, write %zu (defaults: %zu, %zu)\n", limits->read_bytes,
                limits->write_bytes, kUsualCpuLimits.read_bytes, kUsualCpuLimits.write_bytes);
    const double ratio = static_cast<double>(samples[0].cpu_ns + samples[1].cpu_ns) /
                         static_cast<double>(samples[0].copy_ns + samples[1].copy_ns);
    std::printf("# target      8 bytes in and out, processor / copies %.2f, at most 0.5: %s\n",
                ratio,
                !judged        ? "not judged"
                : ratio <= 0.5 ? "met"
                               : "missed");
}

int run()
{
    const auto gpu = require(Gpu::open(0));
    print_header(*gpu, "small device vectors by the processor");
    const Bench bench(*gpu);
    const auto view = bench.map();
    if (!view.ok()) {
        std::printf("# no view     %s\n", view.status().message().c_str());
        return 0;
    }
    std::printf("# coherent    %s\n# flush       %s\n", (*view)->coherent() ? "yes" : "no",
                (*view)->needs_flush() ? "after each write" : "not needed");
    bench.time_mapping();
    bench.time_questions();
    const int late_writes = bench.late_writes(**view), late_reads = bench.late_reads(**view);
    std::printf("# target      writes that later work does not see: %d of %d: %s\n", late_writes,
                kRounds, late_writes == 0 ? "met" : "missed");
    std::printf("# target      finished work that the processor does not see: %d of %d: %s\n",
                late_reads, kRounds, late_reads == 0 ? "met" : "missed");
    print_samples(require(measure_cpu_path(0)), !gpu->is_emulated());
    return late_writes + late_reads == 0 ? 0 : 1;
}

} // namespace
} // namespace hetcoll

int main() { return hetcoll::run(); }
