// Floors of a launch: the call, the way to the flag, a kernel that moves the bytes of a small
// MPI_Allreduce, and other ways to launch.
#include "test/gpu/latency_probe.h"

#include <algorithm>
#include <bit>

namespace hetcoll::probe {
namespace {

constexpr std::size_t kKiB = 1 << 10;
constexpr std::size_t kMostBytes = 64 * kKiB; // of a sum
constexpr std::size_t kMostCount = kMostBytes / sizeof(float);
constexpr float kFirst = 1, kSecond = 2; // the inputs' elements

// Launches into one stream.
class Launches {
public:
    Launches(const FlagKernels &kernels, const char *kind, CUstream stream)
        : kernels_(kernels), kind_(kind), stream_(stream)
    {
        for (std::size_t i = 0; i < 2; ++i) {
            sum_.in[i] = reinterpret_cast<const void *>(memory_ + i * kMostBytes);
            sum_.out[i] = reinterpret_cast<void *>(memory_ + (2 + i) * kMostBytes);
        }
        must(cuMemsetD32(memory_, std::bit_cast<unsigned>(kFirst), kMostCount), "cuMemsetD32");
        must(cuMemsetD32(memory_ + kMostBytes, std::bit_cast<unsigned>(kSecond), kMostCount),
             "cuMemsetD32");
        must(cuMemsetD32(memory_ + 2 * kMostBytes, 0, 2 * kMostCount), "cuMemsetD32");
        must(cuCtxSynchronize(), "cuCtxSynchronize"); // a non-blocking stream does not wait for it
    }

    void measure()
    {
        time_parts(kind_ + "the launch call alone", repetitions(), [this](double &us) {
            const auto start = Clock::now();
            HETCOLL_PROBE_TRY(launch(kernels_.bare, flag_, stream_, 32));
            us = us_since(start);
            return flag_.wait(stream_);
        });
        for (const unsigned threads : {32U, 512U}) {
            time_flag("bare store", kernels_.bare, threads);
            time_flag("fence and store", kernels_.fence, threads);
            time_flag("st.release.sys", kernels_.release, threads);
        }
        for (const std::size_t bytes : {std::size_t{8}, kKiB, kMostBytes}) {
            time_sum(bytes, 32);
            time_sum(bytes, 512);
        }
        answer((kind_ + "the sums are right").c_str(), "%s", yes_or_no(sums_are_right()));
    }

private:
    void time_flag(const char *store, CUfunction kernel, unsigned threads)
    {
        time_calls(kind_ + store + with(threads), [&] {
            HETCOLL_PROBE_TRY(launch(kernel, flag_, stream_, threads));
            return flag_.wait(stream_);
        });
    }

    void time_sum(std::size_t bytes, unsigned threads)
    {
        const std::string what =
            "2 inputs, 2 sums of " + std::to_string(bytes) + " B, fence and store";
        time_calls(kind_ + what + with(threads), [&] {
            HETCOLL_PROBE_TRY(
                launch_sum(kernels_, sum_, bytes / sizeof(float), flag_, stream_, threads));
            return flag_.wait(stream_);
        });
    }

    [[nodiscard]] bool sums_are_right() const
    {
        std::vector<float> sums(2 * kMostCount);
        must(cuMemcpyDtoH(sums.data(), memory_ + 2 * kMostBytes, 2 * kMostBytes), "cuMemcpyDtoH");
        return std::all_of(sums.begin(), sums.end(),
                           [](float sum) { return sum == kFirst + kSecond; });
    }

    static std::string with(unsigned threads)
    {
        return ", " + std::to_string(threads) + " threads";
    }

    const FlagKernels &kernels_;
    const std::string kind_;
    CUstream stream_;
    Flag flag_;
    CUdeviceptr memory_ = allocate(4 * kMostBytes);
    SumArguments sum_;
};

// A kernel's fence then does not wait for writes of the program's own kernels.
void measure_remote_domain(const FlagKernels &kernels, CUstream stream)
{
    Flag flag;
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    attribute.value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    time_calls("cuLaunchKernelEx, remote memory domain: fence and store, 32 threads", [&] {
        auto *word = flag.word();
        std::uint32_t value = flag.next();
        void *arguments[] = {&word, &value};
        HETCOLL_PROBE_TRY(cuLaunchKernelEx(&config, kernels.fence, arguments, nullptr));
        return flag.wait(stream);
    });
}

// A graph of one kernel, whose arguments change before each launch.
class OneKernelGraph {
public:
    explicit OneKernelGraph(const FlagKernels &kernels)
    {
        parameters_.func = kernels.fence;
        parameters_.gridDimX = parameters_.gridDimY = parameters_.gridDimZ = 1;
        parameters_.blockDimX = 32;
        parameters_.blockDimY = parameters_.blockDimZ = 1;
        parameters_.kernelParams = arguments_;
    }

    CUresult make()
    {
        CUgraph graph = nullptr;
        HETCOLL_PROBE_TRY(cuGraphCreate(&graph, 0));
        HETCOLL_PROBE_TRY(cuGraphAddKernelNode(&node_, graph, nullptr, 0, &parameters_));
        return cuGraphInstantiate(&executable_, graph, 0);
    }

    CUresult launch_and_see(CUstream stream)
    {
        value_ = flag_.next();
        HETCOLL_PROBE_TRY(cuGraphExecKernelNodeSetParams(executable_, node_, &parameters_));
        HETCOLL_PROBE_TRY(cuGraphLaunch(executable_, stream));
        return flag_.wait(stream);
    }

private:
    Flag flag_;
    volatile std::uint32_t *word_ = flag_.word();
    std::uint32_t value_ = 0;
    void *arguments_[2] = {&word_, &value_};
    CUDA_KERNEL_NODE_PARAMS parameters_{};
    CUgraphNode node_ = nullptr;
    CUgraphExec executable_ = nullptr;
};

void measure_graph(const FlagKernels &kernels, CUstream stream)
{
    constexpr char kWhat[] = "a graph of one kernel, arguments set: fence and store, 32 threads";
    OneKernelGraph graph(kernels);
    if (const CUresult made = graph.make(); made != CUDA_SUCCESS) {
        tell_error(kWhat, made);
        return;
    }
    time_calls(kWhat, [&] { return graph.launch_and_see(stream); });
}

} // namespace

void measure_launches()
{
    use_primary_context();
    const FlagKernels kernels = load_flag_kernels();
    const CUstream blocking = make_stream(CU_STREAM_DEFAULT);
    const CUstream non_blocking = make_stream(CU_STREAM_NON_BLOCKING);
    Launches(kernels, "blocking stream: ", blocking).measure();
    Launches(kernels, "non-blocking stream: ", non_blocking).measure();
    measure_remote_domain(kernels, non_blocking);
    measure_graph(kernels, non_blocking);
}

} // namespace hetcoll::probe
