// Throughput of the reduction kernels, launched as the engine launches them, against the driver's
// device-to-device copy.
//
// It counts the bytes that cross the memory's pins. A kernel of n inputs and m outputs of b
// bytes reads n*b and writes m*b: (n+m)*b. A copy of c bytes reads c and writes c: 2*c. So a kernel
// is compared with a copy of (n+m)*b/2 bytes, which moves as many; the ratio of their throughputs
// is the ratio of their times. 1.0 is as fast as the memory allows, 0.95 the target for vectors
// that no cache holds. With n = m it is the reduction of n ranks that share the GPU: 2*n*b bytes.
//
// --blocks measures something else: kernel_blocks.cc.
#include "base/element.h"
#include "bench/kernel_blocks.h"
#include "cuda_kernels/reduction.h"
#include "device/device.h"
#include "measure/command_line.h"
#include "measure/micro.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

constexpr double kTarget = 0.95;

struct Width {
    int inputs, outputs;
};
constexpr Width kWidths[] = {{2, 1}, {8, 1}, {2, 2}, {4, 4}, {8, 8}};

struct Case {
    ReduceOp op;
    ElementKind kind;
    int inputs;        // 2 and one output: the three-input kernel, dst = op(a, b)
    int outputs;       // else the many-input kernel
    std::size_t bytes; // of one input
};

void *address(const DeviceMemory &memory) { return reinterpret_cast<void *>(memory.get()); }

// Sets the bytes that mean nothing to what they are in `like`: those of a pair whose second member
// is aligned to four or whose first to eight.
void copy_padding(ElementKind kind, std::vector<unsigned char> &bytes,
                  const std::vector<unsigned char> &like)
{
    std::size_t first = 0, count = 0;
    if (kind == ElementKind::kInt16Int32) {
        first = 2, count = 2;
    } else if (kind == ElementKind::kInt64Int32 || kind == ElementKind::kFloat64Int32) {
        first = 12, count = 4;
    }
    for (std::size_t at = first; count != 0 && at < bytes.size(); at += element_bytes(kind)) {
        std::memcpy(&bytes[at], &like[at], count);
    }
}

// A vector's content is one pattern again and again, so that the host folds and compares one.
constexpr std::size_t kPatternBytes = std::size_t{1} << 20;

// The buffers of one case.
class Workload {
public:
    Workload(const Gpu &gpu, Device &device, CUstream stream, const Case &what)
        : gpu_(gpu), device_(device), stream_(stream), case_(what)
    {
        for (int i = 0; i < what.inputs; ++i) {
            inputs_.push_back(upload(numbers(static_cast<std::uint32_t>(i + 1))));
        }
        for (int i = 0; i < what.outputs; ++i) {
            results_.push_back(upload(std::vector<unsigned char>(pattern_bytes(), 0xee)));
        }
        copy_from_ = require(device.make_memory(copy_bytes()));
        copy_to_ = require(device.make_memory(copy_bytes()));
        require(gpu.driver().cuMemsetD8(copy_from_.get(), 0x3c, copy_bytes()), "cuMemsetD8");
        require(gpu.driver().cuMemsetD8(copy_to_.get(), 0, copy_bytes()), "cuMemsetD8");
    }

    void reduce() const
    {
        const std::size_t count = case_.bytes / element_bytes(case_.kind);
        if (case_.inputs == 2 && case_.outputs == 1) {
            require(device_.kernels().reduce_async(case_.op, case_.kind, address(results_[0]),
                                                   address(inputs_[0]), address(inputs_[1]), count,
                                                   stream_));
            return;
        }
        ReduceInputs inputs = {{}, case_.inputs};
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            inputs.input[i] = address(inputs_[i]);
        }
        ReduceOutputs outputs = {{}, case_.outputs};
        for (std::size_t i = 0; i < results_.size(); ++i) {
            outputs.output[i] = address(results_[i]);
        }
        require(device_.kernels().reduce_many_async(case_.op, case_.kind, outputs, inputs, count,
                                                    Signal{}, stream_));
    }
    void copy() const
    {
        require(device_.copy_async(address(copy_to_), address(copy_from_), copy_bytes(), stream_));
    }
    void finish() const
    {
        require(gpu_.driver().cuStreamSynchronize(stream_), "cuStreamSynchronize");
    }
    [[nodiscard]] std::size_t moved_bytes() const
    {
        return (inputs_.size() + results_.size()) * case_.bytes;
    }

    // Correct before fast: every element against the host's fold.
    void check() const
    {
        reduce();
        finish();
        const std::size_t count = pattern_bytes() / element_bytes(case_.kind);
        std::vector<unsigned char> wanted = download(inputs_[0], 0);
        if (const HostFold fold = host_fold(case_.op, case_.kind); fold != nullptr) {
            std::vector<std::vector<unsigned char>> contents;
            std::vector<const void *> all;
            for (const DeviceMemory &input : inputs_) {
                contents.push_back(download(input, 0));
                all.push_back(contents.back().data());
            }
            fold(wanted.data(), all.data(), all.size(), count);
        }
        for (std::size_t i = 1; i < inputs_.size() && by_element(case_.op) == case_.op; ++i) {
            host_reduce(case_.op, case_.kind)(wanted.data(), wanted.data(),
                                              download(inputs_[i], 0).data(), count);
        }
        for (const DeviceMemory &output : results_) {
            for (std::size_t at = 0; at < case_.bytes; at += pattern_bytes()) {
                compare(download(output, at), wanted);
            }
        }
    }

private:
    [[nodiscard]] std::size_t copy_bytes() const { return moved_bytes() / 2; }
    // Vectors are whole patterns, or less than one.
    [[nodiscard]] std::size_t pattern_bytes() const { return std::min(case_.bytes, kPatternBytes); }

    // Every second byte is 0x3c: positive, ordinary numbers in every format, whose folds neither
    // overflow nor become subnormal (those are slow on a CPU).
    [[nodiscard]] std::vector<unsigned char> numbers(std::uint32_t state) const
    {
        std::vector<unsigned char> content(pattern_bytes(), 0x3c);
        for (std::size_t i = 0; i < content.size(); i += 2) {
            state = state * 1664525u + 1013904223u;
            content[i] = static_cast<unsigned char>(state >> 24);
        }
        return content;
    }
    [[nodiscard]] DeviceMemory upload(const std::vector<unsigned char> &pattern) const
    {
        DeviceMemory memory = require(device_.make_memory(case_.bytes));
        for (std::size_t at = 0; at < case_.bytes; at += pattern.size()) {
            require(gpu_.driver().cuMemcpyHtoD(memory.get() + at, pattern.data(), pattern.size()),
                    "cuMemcpyHtoD");
        }
        return memory;
    }
    [[nodiscard]] std::vector<unsigned char> download(const DeviceMemory &memory,
                                                      std::size_t at) const
    {
        std::vector<unsigned char> content(pattern_bytes());
        require(gpu_.driver().cuMemcpyDtoH(content.data(), memory.get() + at, content.size()),
                "cuMemcpyDtoH");
        return content;
    }
    void compare(std::vector<unsigned char> result, const std::vector<unsigned char> &wanted) const
    {
        copy_padding(case_.kind, result, wanted);
        if (result != wanted) {
            require(error(Errc::kInvalid,
                          "kernel_bench: %s of %s, %d inputs and %d outputs of %zu bytes: wrong",
                          op_name(case_.op), element_name(case_.kind), case_.inputs, case_.outputs,
                          case_.bytes));
        }
    }

    const Gpu &gpu_;
    Device &device_;
    CUstream stream_;
    Case case_;
    std::vector<DeviceMemory> inputs_, results_;
    DeviceMemory copy_from_, copy_to_;
};

// Seconds of one call, of several in a row, so that launches are hidden as they are in a pipeline.
template <class Call> double seconds_of(const Workload &work, Call call)
{
    constexpr int kInARow = 8;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kInARow; ++i) {
        call();
    }
    work.finish();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
           kInARow;
}

struct Speed {
    double kernel_gb_s, copy_gb_s; // gigabytes read and written a second
    [[nodiscard]] double ratio() const { return kernel_gb_s / copy_gb_s; }
};

class Bench {
public:
    explicit Bench(const Gpu &gpu)
        : gpu_(gpu), device_(gpu.driver(), gpu.context(), -1),
          stream_(require(device_.make_stream()))
    {
    }

    // Kernels and copies take turns, so that both meet the same load; the middle of each counts.
    Speed measure(const Case &what)
    {
        constexpr int kWarmup = 4, kSamples = 25;
        const Workload work(gpu_, device_, stream_.get(), what);
        work.check();
        std::vector<double> kernel, copy;
        for (int i = -kWarmup; i < kSamples; ++i) {
            const double copied = seconds_of(work, [&] { work.copy(); });
            const double reduced = seconds_of(work, [&] { work.reduce(); });
            if (i >= 0) {
                copy.push_back(copied);
                kernel.push_back(reduced);
            }
        }
        const double gigabytes = static_cast<double>(work.moved_bytes()) / 1e9;
        return {gigabytes / median(kernel), gigabytes / median(copy)};
    }

    // The types and ops that training and simulation reduce most, at several sizes.
    void print_sums(const std::vector<std::size_t> &sizes)
    {
        std::printf(
            "\nsum: GB/s of the kernel, GB/s of the copy, ratio; KiB an input\n%-14s %6s %7s",
            "kind", "inputs", "outputs");
        for (const std::size_t bytes : sizes) {
            std::printf(" | %19zu KiB", bytes >> 10);
        }
        for (const auto &[op, kind] : {std::pair(ReduceOp::kSum, ElementKind::kFloat32),
                                       std::pair(ReduceOp::kSum, ElementKind::kFloat64),
                                       std::pair(ReduceOp::kSum, ElementKind::kFloat16),
                                       std::pair(ReduceOp::kSumOnce, ElementKind::kFloat16),
                                       std::pair(ReduceOp::kSum, ElementKind::kBfloat16),
                                       std::pair(ReduceOp::kSumOnce, ElementKind::kBfloat16),
                                       std::pair(ReduceOp::kSum, ElementKind::kInt32)}) {
            for (const Width width : kWidths) {
                if (by_element(op) != op && width.inputs == 2) {
                    continue; // of two inputs it is the sum
                }
                const std::string name =
                    std::string(element_name(kind)) + (by_element(op) != op ? " once" : "");
                std::printf("\n%-14s %6d %7d", name.c_str(), width.inputs, width.outputs);
                for (const std::size_t bytes : sizes) {
                    const Speed speed = measure({op, kind, width.inputs, width.outputs, bytes});
                    std::printf(" | %8.1f %8.1f %5.2f", speed.kernel_gb_s, speed.copy_gb_s,
                                speed.ratio());
                    std::fflush(stdout);
                    if (bytes == sizes.back()) {
                        judge(std::string(op_name(op)) + "/" + element_name(kind) + "/" +
                                  std::to_string(width.inputs) + "/" +
                                  std::to_string(width.outputs),
                              speed.ratio());
                    }
                }
            }
        }
        std::printf("\n");
    }

    // Every operation on every kind: the ratio.
    void print_all(std::size_t bytes)
    {
        std::printf("\nevery operation, 2 inputs of %zu KiB: ratio\n%-14s", bytes >> 10, "kind");
        for (int op = 0; op < kMpiOpCount; ++op) {
            std::printf(" %6s", op_name(static_cast<ReduceOp>(op)));
        }
        for (int kind = 0; kind < kElementKindCount; ++kind) {
            const auto k = static_cast<ElementKind>(kind);
            std::printf("\n%-14s", element_name(k));
            for (int op = 0; op < kMpiOpCount; ++op) {
                const auto o = static_cast<ReduceOp>(op);
                if (!is_defined(o, k)) {
                    std::printf(" %6s", "-");
                    continue;
                }
                const double ratio = measure({o, k, 2, 1, bytes}).ratio();
                judge(std::string(op_name(o)) + "/" + element_name(k), ratio);
                std::printf(" %6.2f", ratio);
                std::fflush(stdout);
            }
        }
        std::printf("\n");
    }

    void print_end() const
    {
        std::printf("\n# checked     every result above, every element, against the host\n");
        if (gpu_.is_emulated()) {
            std::printf("# target      not judged: a CPU ran kernels and copies\n");
        } else {
            std::printf("# target      %.2f of the copy for large vectors, met by %d of %d%s%s\n",
                        kTarget, judged_ - missed_, judged_, missed_ > 0 ? ", missed by" : "",
                        below_.c_str());
        }
    }

private:
    void judge(const std::string &what, double ratio)
    {
        ++judged_;
        if (ratio < kTarget) {
            ++missed_;
            char with_ratio[80];
            std::snprintf(with_ratio, sizeof with_ratio, " %s %.2f", what.c_str(), ratio);
            below_ += with_ratio;
        }
    }

    const Gpu &gpu_;
    Device device_;
    StreamHandle stream_;
    int judged_ = 0, missed_ = 0;
    std::string below_; // those that missed the target
};

void compare_with_copies(const Gpu &gpu)
{
    print_header(gpu, "kernel_bench: reduction kernels against device-to-device copies");
    std::printf("# bytes       n inputs and m outputs of b bytes: (n+m)*b, read and written; the "
                "copy next to it moves as many\n"
                "# method      8 launches in a row, kernels and copies in turn, median of 25\n");
    Bench bench(gpu);
    constexpr std::size_t kMiB = 1 << 20;
    if (gpu.is_emulated()) {
        bench.print_sums({kMiB / 16, kMiB, 8 * kMiB});
        bench.print_all(kMiB);
    } else { // from what caches hold to what none does
        bench.print_sums({kMiB, 16 * kMiB, 256 * kMiB});
        bench.print_all(64 * kMiB);
    }
    bench.print_end();
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    bool blocks = false;
    std::string cublas;
    hetcoll::CommandLine line("kernel_bench",
                              "Times the reduction kernels against device-to-device copies");
    line.add_flag("--blocks", blocks,
                  "time the kernel of many inputs with at most 1, 2, 4 and "
                  "more blocks instead: over the link to the host, in the GPU's "
                  "own memory, and next to matrix products");
    line.add_option("--cublas", cublas, "the cuBLAS for these products, if not the loader's")
        .type_name("LIB")
        .needs("--blocks");
    int code = 0;
    if (!line.parse(argc, argv, code)) {
        return code;
    }
    const std::unique_ptr<hetcoll::Gpu> gpu = hetcoll::require(hetcoll::Gpu::open(0));
    if (blocks) {
        hetcoll::sweep_blocks(*gpu, cublas);
    } else {
        hetcoll::compare_with_copies(*gpu);
    }
    return hetcoll::end_output("kernel_bench", 0);
}
