// Calls in the order of a stream: what queueing one costs, beyond the driver's own calls; and how
// much of a training step's sums overlaps with its backward pass, where layers are times of sleep
// on a stream and sums go over the emulated GPU's links.
//
//   stream_bench cost [BURSTS]
//   stream_bench overlap LAYERS BYTES LAYER_US [STEPS]
#include "cuda_kernels/reduction.h"
#include "include/hetcoll_stream.h"
#include "measure/buffer.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

namespace hetcoll {
namespace {

double now_us()
{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

void must(int code, const char *call)
{
    if (code != 0) {
        std::fprintf(stderr, "stream_bench: %s answers %d\n", call, code);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

template <class T> T must(Result<T> made)
{
    if (!made.ok()) {
        std::fprintf(stderr, "stream_bench: %s\n", made.status().message().c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return std::move(*made);
}

template <class Call> Call find(const char *name)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    auto const call = reinterpret_cast<Call>(dlsym(library, name));
    must(call == nullptr ? 1 : 0, name);
    return call;
}

struct Streams {
    explicit Streams(const Gpu &its_gpu, std::size_t most_bytes) : gpu(its_gpu)
    {
        must(gpu.driver().cuStreamCreate(&compute, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        must(gpu.driver().cuStreamCreate(&sums, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        must(gpu.driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
        must(hetcoll_stream_attach(MPI_COMM_WORLD, sums, most_bytes), "hetcoll_stream_attach");
        must(hetcoll_stream_is_attached(MPI_COMM_WORLD, sums) ? 0 : 1, "an attached stream");
    }
    ~Streams()
    {
        hetcoll_stream_detach(MPI_COMM_WORLD, sums);
        gpu.driver().cuEventDestroy(event);
        gpu.driver().cuStreamDestroy(sums);
        gpu.driver().cuStreamDestroy(compute);
    }
    Streams(const Streams &) = delete;
    Streams &operator=(const Streams &) = delete;

    const Gpu &gpu;
    CUstream compute = nullptr, sums = nullptr;
    CUevent event = nullptr;
};

// The driver calls of which a queued call consists: as a meeting sums it, or with a kernel.
class DriverCalls {
public:
    DriverCalls(const Streams &on, const Buffer &vector, std::size_t bytes, bool by_kernel)
        : on_(on), driver_(on.gpu.driver()), bytes_(bytes), by_kernel_(by_kernel),
          word_(must(Buffer::allocate(&on.gpu, Memory::kPinned, 64))),
          other_(must(
              Buffer::allocate(&on.gpu, by_kernel ? Memory::kDevice : Memory::kPinned, bytes))),
          flag_(address(word_)), vector_(address(vector)), between_(address(other_))
    {
        *reinterpret_cast<volatile std::uint32_t *>(word_.data()) = 1;
        must(driver_.cuModuleLoadData(&module_, kernel_image()), "cuModuleLoadData");
        must(driver_.cuModuleGetFunction(&kernel_, module_, kCopyKernelName),
             "cuModuleGetFunction");
    }
    ~DriverCalls() { driver_.cuModuleUnload(module_); }
    DriverCalls(const DriverCalls &) = delete;
    DriverCalls &operator=(const DriverCalls &) = delete;

    void make() const
    {
        const CUstream stream = on_.compute;
        CUcontext current = nullptr;
        CUstreamCaptureStatus captures = CU_STREAM_CAPTURE_STATUS_NONE;
        driver_.cuCtxGetCurrent(&current);
        driver_.cuStreamIsCapturing(stream, &captures);
        driver_.cuCtxGetCurrent(&current);
        driver_.cuMemcpyAsync(between_, vector_, bytes_, stream);
        driver_.cuStreamWriteValue32(stream, flag_ + 8, 1, 0);
        if (by_kernel_) {
            driver_.cuStreamWaitValue32(stream, flag_, 1, CU_STREAM_WAIT_VALUE_GEQ);
            void *none = nullptr;
            std::size_t nothing = 0;
            Signal signal{};
            void *arguments[] = {&none, &none, &nothing, &signal};
            driver_.cuLaunchKernel(kernel_, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
        }
        driver_.cuStreamWaitValue32(stream, flag_, 1, CU_STREAM_WAIT_VALUE_GEQ);
        driver_.cuMemcpyAsync(vector_, between_, bytes_, stream);
    }

private:
    static CUdeviceptr address(const Buffer &buffer)
    {
        return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(buffer.data()));
    }
    const Streams &on_;
    const Driver &driver_;
    std::size_t bytes_;
    bool by_kernel_;
    Buffer word_, other_;
    CUdeviceptr flag_, vector_, between_;
    CUmodule module_ = nullptr;
    CUfunction kernel_ = nullptr;
};

// Bursts of calls that find the stream's work not done, so that hetcoll's thread only looks at the
// first; and of the driver calls that a queued call consists of.
void cost(const Gpu &gpu, std::size_t bytes, bool by_kernel, int bursts)
{
    constexpr int kBurst = 48;
    const Streams on(gpu, 1 << 20);
    const Driver &driver = gpu.driver();
    const Buffer vector = must(Buffer::allocate(&gpu, Memory::kDevice, bytes));
    const DriverCalls calls(on, vector, bytes, by_kernel);
    const auto launch = find<decltype(&::cuLaunchHostFunc)>("cuLaunchHostFunc");
    const auto stand = [](void *) { std::this_thread::sleep_for(std::chrono::milliseconds(3)); };
    std::vector<double> queued, bare;
    for (int burst = -5; burst < bursts; ++burst) {
        MPI_Barrier(MPI_COMM_WORLD);
        must(launch(on.sums, stand, nullptr), "cuLaunchHostFunc");
        double start = now_us();
        for (int i = 0; i < kBurst; ++i) {
            must(hetcoll_allreduce_enqueue(MPI_IN_PLACE, vector.data(),
                                           static_cast<int>(bytes / sizeof(int)), MPI_INT, MPI_MAX,
                                           MPI_COMM_WORLD, on.sums),
                 "hetcoll_allreduce_enqueue");
        }
        const double ours = (now_us() - start) / kBurst;
        must(driver.cuStreamSynchronize(on.sums), "cuStreamSynchronize");

        must(launch(on.compute, stand, nullptr), "cuLaunchHostFunc");
        start = now_us();
        for (int i = 0; i < kBurst; ++i) {
            calls.make();
        }
        const double theirs = (now_us() - start) / kBurst;
        must(driver.cuStreamSynchronize(on.compute), "cuStreamSynchronize");
        if (burst >= 0) {
            queued.push_back(ours);
            bare.push_back(theirs);
        }
    }
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::printf("cost of a queued call of %zu bytes, us: %.2f, of its driver calls %.2f, "
                    "hetcoll's own %.2f\n",
                    bytes, median(queued), median(bare), median(queued) - median(bare));
    }
}

struct Step {
    int layers, layer_us;
    std::size_t bytes;
    bool computes, sums;
};

// Microseconds of the slowest rank.
double run(const Streams &on, const Step &step, const std::vector<Buffer> &gradients)
{
    const Driver &driver = on.gpu.driver();
    const auto launch = find<decltype(&::cuLaunchHostFunc)>("cuLaunchHostFunc");
    const auto layer = [](void *us) {
        std::this_thread::sleep_for(std::chrono::microseconds(*static_cast<const int *>(us)));
    };
    int layer_us = step.layer_us;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_us();
    for (int i = 0; i < step.layers; ++i) {
        if (step.computes) {
            must(launch(on.compute, layer, &layer_us), "cuLaunchHostFunc");
        }
        if (step.sums) {
            must(driver.cuEventRecord(on.event, on.compute), "cuEventRecord");
            must(driver.cuStreamWaitEvent(on.sums, on.event, 0), "cuStreamWaitEvent");
            must(hetcoll_allreduce_enqueue(MPI_IN_PLACE, gradients[i].data(),
                                           static_cast<int>(step.bytes / sizeof(float)), MPI_FLOAT,
                                           MPI_SUM, MPI_COMM_WORLD, on.sums),
                 "hetcoll_allreduce_enqueue");
        }
    }
    must(driver.cuStreamSynchronize(on.compute), "cuStreamSynchronize");
    must(driver.cuStreamSynchronize(on.sums), "cuStreamSynchronize");
    double us = now_us() - start;
    must(hetcoll_stream_check(MPI_COMM_WORLD, on.sums), "hetcoll_stream_check");
    MPI_Allreduce(MPI_IN_PLACE, &us, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return us;
}

void overlap(const Gpu &gpu, int layers, std::size_t bytes, int layer_us, int steps)
{
    const Streams on(gpu, bytes);
    std::vector<Buffer> gradients;
    for (int i = 0; i < layers; ++i) {
        gradients.push_back(must(Buffer::allocate(&gpu, Memory::kDevice, bytes)));
        must(gpu.driver().cuMemsetD8(reinterpret_cast<CUdeviceptr>(gradients.back().data()), 0,
                                     bytes),
             "cuMemsetD8");
    }
    const Step step{layers, layer_us, bytes, true, true};
    Step compute = step, sums = step;
    compute.sums = sums.computes = false;
    std::vector<double> alone, summed, both;
    for (int i = -2; i < steps; ++i) {
        const double a = run(on, compute, gradients), s = run(on, sums, gradients),
                     b = run(on, step, gradients);
        if (i >= 0) {
            alone.push_back(a);
            summed.push_back(s);
            both.push_back(b);
        }
    }
    const double a = median(alone), s = median(summed), b = median(both);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::printf(
            "%2d layers of %8zu bytes: backward pass %8.1f ms, sums %8.1f ms, both %8.1f ms, "
            "overlap %5.1f %% of the shorter\n",
            layers, bytes, a / 1e3, s / 1e3, b / 1e3, 100 * (a + s - b) / std::min(a, s));
    }
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    using namespace hetcoll;
    int provided = 0, rank = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const auto number = [&](int i, int otherwise) {
        return argc > i ? std::atoi(argv[i]) : otherwise;
    };
    {
        const auto gpu = must(Gpu::open(rank));
        if (argc > 1 && std::string_view(argv[1]) == "overlap") {
            overlap(*gpu, number(2, 8), static_cast<std::size_t>(number(3, 1 << 20)),
                    number(4, 10'000), number(5, 9));
        } else {
            cost(*gpu, 16, false, number(2, 200));
            cost(*gpu, 65'536, true, number(2, 200));
        }
    }
    MPI_Finalize();
    return 0;
}
