// Throughput of the kernels against a device-to-device copy that moves as many bytes, launched as
// the engine launches them. `ratio` is the copy's time over the kernel's, 1.0 being as fast as
// memory allows; gb_s and copy_gb_s count bytes read and written. Kernels and copies alternate, and
// medians are compared. On the emulated GPU none of it is a GPU's speed.
#include "base/element.h"
#include "bench/commit.h"
#include "cuda_kernels/reduction.h"
#include "device/device.h"
#include "device/driver.h"

#include <benchmark/benchmark.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

void require(const Status &status)
{
    if (!status.ok()) {
        std::fprintf(stderr, "kernel_bench: %s\n", status.message().c_str());
        std::exit(1);
    }
}

template <class T> T require(Result<T> result)
{
    if (!result.ok()) {
        require(result.take_status());
    }
    return std::move(*result);
}

// Device 0 with its primary context current for the whole run.
class Gpu {
public:
    Gpu()
    {
        driver = library_.get();
        if (driver == nullptr) {
            require(driver_error());
        }
        check(driver->cuInit(0), "cuInit");
        check(driver->cuDeviceGet(&id_, 0), "cuDeviceGet");
        check(driver->cuDevicePrimaryCtxRetain(&context_, id_), "cuDevicePrimaryCtxRetain");
        check(driver->cuCtxSetCurrent(context_), "cuCtxSetCurrent");
        device = std::make_unique<Device>(*driver, context_, -1);
        stream = require(device->make_stream());
    }
    ~Gpu()
    {
        stream = {};
        device.reset();
        driver->cuCtxSetCurrent(nullptr);
        driver->cuDevicePrimaryCtxRelease(id_);
    }

    void check(CUresult result, const char *call) const
    {
        require(driver_status(*driver, result, call, "measuring"));
    }
    [[nodiscard]] bool is_emulated() const { return library_.is_emulated(); }
    [[nodiscard]] std::string name() const
    {
        char text[128] = "";
        check(driver->cuDeviceGetName(text, sizeof text, id_), "cuDeviceGetName");
        return text;
    }
    [[nodiscard]] std::string version() const
    {
        int version = 0;
        check(driver->cuDriverGetVersion(&version), "cuDriverGetVersion");
        return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    }
    void finish() const { check(driver->cuStreamSynchronize(stream.get()), "cuStreamSynchronize"); }

    const Driver *driver = nullptr;
    std::unique_ptr<Device> device;
    StreamHandle stream;

private:
    Status driver_error() const
    {
        return error(Errc::kDriver, "%s", library_.load_error().message().c_str());
    }

    DriverLibrary library_;
    CUdevice id_ = 0;
    CUcontext context_ = nullptr;
};

struct Case {
    ReduceOp op;
    ElementKind kind;
    int inputs;        // 2: the three-input kernel; more: the n-input kernel
    std::size_t bytes; // of one input
};

constexpr int kMostInputs = 8;

void *address(const DeviceMemory &memory)
{
    return reinterpret_cast<void *>(memory.get());
}

// The buffers of one case. Contents are small numbers, so that no time goes to subnormals.
class Workload {
public:
    Workload(Gpu &gpu, const Case &what) : gpu_(gpu), case_(what)
    {
        for (int i = 0; i < what.inputs; ++i) {
            inputs_.push_back(filled(what.bytes, i + 1));
        }
        result_ = filled(what.bytes, 0);
        copy_from_ = filled(copy_bytes(), 1);
        copy_to_ = filled(copy_bytes(), 2);
    }

    void reduce() const
    {
        const std::size_t count = case_.bytes / element_bytes(case_.kind);
        if (case_.inputs == 2) {
            require(gpu_.device->reduce_async(case_.op, case_.kind, address(result_),
                                              address(inputs_[0]), address(inputs_[1]), count,
                                              gpu_.stream.get()));
            return;
        }
        ReduceInputs inputs = {{}, case_.inputs};
        for (int i = 0; i < case_.inputs; ++i) {
            inputs.input[i] = address(inputs_[static_cast<std::size_t>(i)]);
        }
        require(gpu_.device->reduce_many_async(case_.op, case_.kind, address(result_), inputs,
                                               count, gpu_.stream.get()));
    }
    void copy() const
    {
        require(gpu_.device->copy_async(address(copy_to_), address(copy_from_), copy_bytes(),
                                        gpu_.stream.get()));
    }
    // Read and written by the kernel, and by the copy.
    [[nodiscard]] std::size_t moved_bytes() const
    {
        return (static_cast<std::size_t>(case_.inputs) + 1) * case_.bytes;
    }

    // Correct before fast: the result against a fold on the host.
    [[nodiscard]] bool is_right() const
    {
        reduce();
        gpu_.finish();
        std::vector<unsigned char> wanted = read(inputs_[0]);
        for (std::size_t i = 1; i < inputs_.size(); ++i) {
            host_reduce(case_.op, case_.kind)(wanted.data(), wanted.data(), read(inputs_[i]).data(),
                                              case_.bytes / element_bytes(case_.kind));
        }
        std::vector<unsigned char> result = read(result_);
        if (case_.kind == ElementKind::kInt16Int32) { // two bytes of padding after the first two
            for (std::size_t i = 0; i < result.size(); i += 8) {
                result[i + 2] = wanted[i + 2];
                result[i + 3] = wanted[i + 3];
            }
        }
        return result == wanted;
    }

private:
    [[nodiscard]] std::size_t copy_bytes() const { return moved_bytes() / 2; }
    [[nodiscard]] DeviceMemory filled(std::size_t bytes, int seed) const
    {
        DeviceMemory memory = require(gpu_.device->make_memory(bytes));
        // 0x3c3c is 1.06 in half, and no other format has it far from 1.
        std::vector<unsigned char> content(bytes, static_cast<unsigned char>(0x3c));
        for (std::size_t i = 0; i < bytes; i += 64) {
            content[i] = static_cast<unsigned char>(seed + static_cast<int>(i / 64));
        }
        gpu_.check(gpu_.driver->cuMemcpyHtoD(memory.get(), content.data(), bytes), "cuMemcpyHtoD");
        return memory;
    }
    [[nodiscard]] std::vector<unsigned char> read(const DeviceMemory &memory) const
    {
        std::vector<unsigned char> content(case_.bytes);
        gpu_.check(gpu_.driver->cuMemcpyDtoH(content.data(), memory.get(), case_.bytes),
                   "cuMemcpyDtoH");
        return content;
    }

    Gpu &gpu_;
    Case case_;
    std::vector<DeviceMemory> inputs_;
    DeviceMemory result_, copy_from_, copy_to_;
};

double median(std::vector<double> &values)
{
    std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                     values.end());
    return values[values.size() / 2];
}

// Seconds of one call, of several in a row, so that the launch is hidden as it is in a pipeline.
template <class Call> double seconds_of(const Gpu &gpu, Call call)
{
    constexpr int kInARow = 8;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kInARow; ++i) {
        call();
    }
    gpu.finish();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return took.count() / kInARow;
}

void run(benchmark::State &state, Gpu &gpu, const Case &what)
{
    const Workload work(gpu, what);
    if (!work.is_right()) {
        state.SkipWithError("the result is wrong");
        return;
    }
    std::vector<double> kernel, copy;
    for ([[maybe_unused]] auto _ : state) {
        copy.push_back(seconds_of(gpu, [&] { work.copy(); }));
        kernel.push_back(seconds_of(gpu, [&] { work.reduce(); }));
        state.SetIterationTime(kernel.back());
    }
    const double kernel_s = median(kernel), copy_s = median(copy);
    const double moved = static_cast<double>(work.moved_bytes());
    state.counters["gb_s"] = moved / kernel_s / 1e9;
    state.counters["copy_gb_s"] = moved / copy_s / 1e9;
    state.counters["ratio"] = copy_s / kernel_s;
}

std::vector<Case> cases(bool emulated)
{
    const std::vector<std::size_t> sizes =
        emulated ? std::vector<std::size_t>{64 << 10, 1 << 20, 8 << 20}
                 : std::vector<std::size_t>{256 << 10, 4 << 20, 64 << 20, 256 << 20};
    std::vector<Case> all;
    const auto add = [&](ReduceOp op, ElementKind kind, int inputs, std::size_t bytes) {
        if (is_defined(op, kind)) {
            all.push_back({op, kind, inputs, bytes});
        }
    };
    for (const std::size_t bytes : sizes) { // what training and simulation reduce
        for (const ElementKind kind :
             {ElementKind::kFloat32, ElementKind::kFloat64, ElementKind::kFloat16,
              ElementKind::kBfloat16, ElementKind::kInt32}) {
            add(ReduceOp::kSum, kind, 2, bytes);
            add(ReduceOp::kSum, kind, kMostInputs, bytes);
        }
    }
    for (int op = 0; op < kReduceOpCount; ++op) { // and every other kernel once
        for (int kind = 0; kind < kElementKindCount; ++kind) {
            add(static_cast<ReduceOp>(op), static_cast<ElementKind>(kind), 2, sizes[1] * 4);
        }
    }
    return all;
}

void register_all(Gpu &gpu)
{
    for (const Case &what : cases(gpu.is_emulated())) {
        const std::string name = std::string(op_name(what.op)) + "/" + element_name(what.kind) +
                                 "/inputs:" + std::to_string(what.inputs) +
                                 "/bytes:" + std::to_string(what.bytes);
        benchmark::RegisterBenchmark(
            name.c_str(), [&gpu, what](benchmark::State &state) { run(state, gpu, what); })
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond);
    }
}

std::string cpu_model()
{
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name")) {
            return line.substr(line.find(':') + 2);
        }
    }
    return "unknown CPU";
}

void print_header(const Gpu &gpu)
{
    utsname system{};
    uname(&system);
    const std::string warning = gpu.is_emulated() ? " (EMULATED: no time here is a GPU's)" : "";
    std::printf("# machine %s, Linux %s\n", cpu_model().c_str(), system.release);
    std::printf("# gpu %s%s\n", gpu.name().c_str(), warning.c_str());
    std::printf("# cuda_driver %s\n# commit %s\n", gpu.version().c_str(), HETCOLL_COMMIT);
    std::fflush(stdout);
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 1;
    }
    hetcoll::Gpu gpu;
    hetcoll::print_header(gpu);
    hetcoll::register_all(gpu);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
