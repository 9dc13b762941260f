// Two processes that use the GPU at the same time. Without MPS their kernels take turns, and so do
// the driver's small copies, but not copies by a copy engine: the size from which a copy takes a
// few microseconds tells where the driver changes.
#include "test/gpu/latency_probe.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace hetcoll::probe {
namespace {

constexpr std::size_t kKiB = 1 << 10;
constexpr std::size_t kMostBytes = 64 * kKiB;
constexpr int kProcesses = 2;
constexpr int kMostSeconds = 50;    // of each; less than the whole group may take
constexpr double kLongestUs = 20e6; // that one waits for the other

// In memory of both processes: how many have come to a measurement, and how many are through.
struct Progress {
    std::atomic<int> arrived{0}, through{0};
};

// One process of the two, in the measurements that both make together.
class Together {
public:
    Together(Progress &progress, int process)
        : progress_(progress), prefix_("process " + std::to_string(process) + ": ")
    {
    }

    // Both begin together. The one that ends first goes on calling until the other is through: no
    // call is timed alone.
    template <class Call> void time(const std::string &what, const Call &call)
    {
        const int all = kProcesses * ++rounds_;
        ++progress_.arrived;
        wait_for_other([&] { return progress_.arrived >= all; }, sched_yield);
        time_calls(prefix_ + what, repetitions(300), call);
        ++progress_.through;
        wait_for_other([&] { return progress_.through >= all; }, call);
    }
    void tell_missing(const std::string &what) { probe::tell_missing(prefix_ + what); }

private:
    // Ends this process if the other one has ended, which has said why.
    template <class Done, class Meanwhile>
    void wait_for_other(const Done &done, const Meanwhile &meanwhile)
    {
        for (const auto start = Clock::now(); !done(); meanwhile()) {
            if (us_since(start) > kLongestUs) {
                answer("not asked", "the other process does not go on");
                _exit(1);
            }
        }
    }

    Progress &progress_;
    std::string prefix_;
    int rounds_ = 0;
};

// cuMemcpyBatchAsync as CUDA 12.8 has it, which the plain name stays. Older cuda.h lack it.
struct BatchAttributes {
    int source_access_order = 1; // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    CUmemLocation source_hint{}, target_hint{};
    unsigned flags = 1; // CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE
};
using MemcpyBatchAsync = CUresult(CUdeviceptr *to, CUdeviceptr *from, std::size_t *bytes,
                                  std::size_t count, BatchAttributes *attributes,
                                  std::size_t *first_with, std::size_t attribute_count,
                                  std::size_t *failed, CUstream stream);

void measure_batch_copies(Together &together, CUdeviceptr memory, void *pinned, CUstream stream)
{
    auto *const copy =
        reinterpret_cast<MemcpyBatchAsync *>(dlsym(RTLD_DEFAULT, "cuMemcpyBatchAsync"));
    for (const std::size_t bytes : {std::size_t{8}, 8 * kKiB}) {
        const std::string what =
            "cuMemcpyBatchAsync that prefers overlap, DtoH " + std::to_string(bytes) + " B";
        if (copy == nullptr) {
            together.tell_missing(what);
            continue;
        }
        together.time(what, [&] {
            auto to = reinterpret_cast<CUdeviceptr>(pinned);
            CUdeviceptr from = memory;
            std::size_t size = bytes, first = 0, failed = 0;
            BatchAttributes attributes;
            HETCOLL_PROBE_TRY(copy(&to, &from, &size, 1, &attributes, &first, 1, &failed, stream));
            return cuStreamSynchronize(stream);
        });
    }
}

void measure_as(int process, Progress &progress)
{
    use_primary_context();
    const FlagKernels kernels = load_flag_kernels();
    const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    const CUdeviceptr memory = allocate(kMostBytes);
    void *pinned = allocate_host(kMostBytes);
    Together together(progress, process);
    Flag flag;
    for (const std::size_t bytes :
         {std::size_t{8}, 4 * kKiB, 8 * kKiB, 16 * kKiB, 32 * kKiB, kMostBytes}) {
        together.time("DtoH " + std::to_string(bytes) + " B, synchronised", [&] {
            HETCOLL_PROBE_TRY(cuMemcpyDtoHAsync(pinned, memory, bytes, stream));
            return cuStreamSynchronize(stream);
        });
    }
    measure_batch_copies(together, memory, pinned, stream);
    together.time("launch to flag, fence and store, 32 threads",
                  [&] { return launch_and_see(kernels, flag, stream); });
}

} // namespace

// The processes begin before either has called the driver.
void measure_two_processes()
{
    void *shared =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        answer("not asked", "no shared memory");
        return;
    }
    auto *progress = new (shared) Progress;
    pid_t children[kProcesses];
    for (int process = 0; process < kProcesses; ++process) {
        children[process] =
            start_child(kMostSeconds, [process, progress] { measure_as(process, *progress); });
    }
    for (const pid_t child : children) {
        wait_for(child);
    }
}

} // namespace hetcoll::probe
