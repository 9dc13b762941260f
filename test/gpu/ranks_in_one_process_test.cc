// N ranks in one process, a thread each, on one GPU: the whole core over messages in memory. Runs
// on the emulated GPU in make check and on a real one in make check-gpu.
#include "device/driver.h"
#include "engine/hetcoll.h"
#include "test/unit/memory_network.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace hetcoll {
namespace {

enum class Where { kHost, kDevice };

// Device memory for tests, in the primary context of device 0.
class Gpu {
public:
    Gpu()
    {
        const Driver *found = library_.get();
        usable_ = found != nullptr && found->cuInit(0) == CUDA_SUCCESS &&
                  found->cuDevicePrimaryCtxRetain(&context_, 0) == CUDA_SUCCESS;
    }
    ~Gpu()
    {
        if (usable_) {
            driver().cuDevicePrimaryCtxRelease(0);
        }
    }
    [[nodiscard]] bool usable() const { return usable_; }
    [[nodiscard]] const Driver &driver() const { return *library_.get(); }
    void enter() const { ASSERT_EQ(driver().cuCtxSetCurrent(context_), CUDA_SUCCESS); }

private:
    DriverLibrary library_;
    CUcontext context_ = nullptr;
    bool usable_ = false;
};

// A vector of floats in host or device memory.
class Buffer {
public:
    Buffer(const Gpu &gpu, Where where, const std::vector<float> &values)
        : gpu_(gpu), where_(where), host_(values)
    {
        if (where == Where::kDevice) {
            EXPECT_EQ(gpu.driver().cuMemAlloc(&device_, bytes() + 4), CUDA_SUCCESS);
            EXPECT_EQ(gpu.driver().cuMemcpyHtoD(device_, host_.data(), bytes()), CUDA_SUCCESS);
        }
    }
    ~Buffer()
    {
        if (where_ == Where::kDevice) {
            gpu_.driver().cuMemFree(device_);
        }
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    [[nodiscard]] void *data()
    {
        return where_ == Where::kDevice ? reinterpret_cast<void *>(device_) : host_.data();
    }
    [[nodiscard]] const std::vector<float> &read()
    {
        if (where_ == Where::kDevice) {
            EXPECT_EQ(gpu_.driver().cuMemcpyDtoH(host_.data(), device_, bytes()), CUDA_SUCCESS);
        }
        return host_;
    }

private:
    [[nodiscard]] std::size_t bytes() const { return host_.size() * sizeof(float); }

    const Gpu &gpu_;
    Where where_;
    std::vector<float> host_;
    CUdeviceptr device_ = 0;
};

void discard_log(int, const char *) {}

// All ranks share the process's state, as the communicators of one process do.
class Job {
public:
    Job(int size, const char *algorithm)
    {
        hetcoll_settings settings = hetcoll_default_settings();
        settings.algorithm = algorithm;
        settings.tuning_table = "none";
        settings.recognize_ops = false;
        settings.max_memory = 0;
        settings.small_limit = 1024;
        settings.chunk_bytes = 4096;
        settings.log = discard_log;
        char problem[256];
        process_ = hetcoll_process_create(&settings, problem, sizeof problem);
        EXPECT_NE(process_, nullptr) << problem;
        comms_ = make_communicator(size);
    }
    ~Job()
    {
        for (hetcoll_comm *comm : all_comms_) {
            hetcoll_comm_destroy(comm);
        }
        hetcoll_process_destroy(process_);
    }
    // Makes one more communicator of `size` ranks; returns that of each.
    std::vector<hetcoll_comm *> make_communicator(int size)
    {
        MemoryNetwork &network = networks_.emplace_back(size, false, 5u);
        hetcoll_facts facts;
        hetcoll_process_facts(process_, &facts);
        const std::vector<hetcoll_facts> of_rank(static_cast<std::size_t>(size), facts);
        std::vector<hetcoll_comm *> comms;
        for (int rank = 0; rank < size; ++rank) {
            const hetcoll_p2p p2p = network.rank(rank);
            comms.push_back(hetcoll_comm_create(process_, &p2p, &facts, of_rank.data()));
        }
        all_comms_.insert(all_comms_.end(), comms.begin(), comms.end());
        return comms;
    }
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;

    void on_every_rank(const std::function<void(int, hetcoll_comm *)> &body)
    {
        std::vector<std::thread> threads;
        for (int rank = 0; rank < static_cast<int>(comms_.size()); ++rank) {
            threads.emplace_back(body, rank, comms_[rank]);
        }
        for (std::thread &thread : threads) {
            thread.join();
        }
    }
    [[nodiscard]] std::uint64_t counter(hetcoll_counter counter) const
    {
        return hetcoll_process_counter(process_, counter);
    }

private:
    std::deque<MemoryNetwork> networks_;
    hetcoll_process *process_ = nullptr;
    std::vector<hetcoll_comm *> comms_, all_comms_;
};

hetcoll_call sum_call(Buffer &send, Buffer &recv, std::size_t count)
{
    hetcoll_call call{};
    call.send = send.data();
    call.recv = recv.data();
    call.kind = HETCOLL_FLOAT32;
    call.op = HETCOLL_SUM;
    call.count = count;
    call.span = count * sizeof(float);
    call.dense = 1;
    call.previous_allreduce = [](void *, const void *, void *) { return -99; }; // nobody's here
    return call;
}

// One allreduce with rank r's buffers in `send_where(r)` and `recv_where(r)`.
void check_sum(Job &job, const Gpu &gpu, int size, std::size_t count,
               const std::function<Where(int)> &send_where,
               const std::function<Where(int)> &recv_where, bool in_place)
{
    job.on_every_rank([&](int rank, hetcoll_comm *comm) {
        gpu.enter();
        std::vector<float> input(count), sum(count);
        for (std::size_t i = 0; i < count; ++i) {
            input[i] = static_cast<float>((rank + 1) * (i % 113 + 1));
            sum[i] = static_cast<float>(size * (size + 1) / 2 * (i % 113 + 1));
        }
        Buffer send(gpu, send_where(rank), input);
        Buffer recv(gpu, recv_where(rank), in_place ? input : std::vector<float>(count, -1.0f));
        const hetcoll_call call = sum_call(in_place ? recv : send, recv, count);
        ASSERT_EQ(hetcoll_allreduce(comm, &call), HETCOLL_SUCCESS)
            << "rank " << rank << " of " << size << ", count " << count;
        EXPECT_EQ(recv.read(), sum) << "rank " << rank << " of " << size << ", count " << count;
        EXPECT_EQ(send.read(), input) << "rank " << rank << " of " << size << ", count " << count;
    });
}

class RanksInOneProcess : public ::testing::TestWithParam<int> {
protected:
    void SetUp() override
    {
        if (!gpu.usable()) {
            GTEST_SKIP() << "no CUDA driver, or no device";
        }
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "ranks order their kernels by a page that each maps at an address of its "
                        "own: ThreadSanitizer takes that for no order";
#endif
    }
    Gpu gpu;
};

const std::function<Where(int)> on_device = [](int) { return Where::kDevice; };

TEST_P(RanksInOneProcess, DeviceBuffersEndWithTheSum)
{
    const int size = GetParam();
    for (const char *algorithm : {"auto", "recursive_doubling", "rabenseifner", "ring"}) {
        Job job(size, algorithm);
        for (const std::size_t count : {1, 255, 257, 1021, 50001}) {
            check_sum(job, gpu, size, count, on_device, on_device, false);
            check_sum(job, gpu, size, count, on_device, on_device, true);
        }
        EXPECT_EQ(job.counter(HETCOLL_CALLS_FAILED), 0u);
    }
}

// Each rank's memory is the others' own here: no handle is opened, all else is as between
// processes.
TEST_P(RanksInOneProcess, OneKernelARankReadsAndWritesAllBuffers)
{
    const int size = GetParam();
    if (size == 1) {
        GTEST_SKIP() << "nothing is reduced";
    }
    struct Served {
        const char *algorithm;
        hetcoll_counter counter;
    };
    for (const auto &[algorithm, served] :
         {Served{"one_shot", HETCOLL_CALLS_ONE_SHOT}, Served{"two_shot", HETCOLL_CALLS_TWO_SHOT},
          Served{"leader", HETCOLL_CALLS_LEADER}, Served{"copy_in", HETCOLL_CALLS_COPY_IN},
          Served{"hierarchical", HETCOLL_CALLS_HIERARCHICAL}}) {
        Job job(size, algorithm);
        std::uint64_t calls = 0;
        for (const std::size_t count : {257, 1021, 50001}) { // above the small limit
            check_sum(job, gpu, size, count, on_device, on_device, false);
            check_sum(job, gpu, size, count, on_device, on_device, true);
            calls += 2 * static_cast<std::uint64_t>(size);
        }
        EXPECT_EQ(job.counter(served), calls) << algorithm;
        EXPECT_EQ(job.counter(HETCOLL_CALLS_FAILED), 0u);
    }
}

TEST_P(RanksInOneProcess, HostAndDeviceBuffersMix)
{
    const int size = GetParam();
    const std::function<Where(int)> first_on_host = [](int rank) {
        return rank == 0 ? Where::kHost : Where::kDevice;
    };
    const std::function<Where(int)> last_on_device = [size](int rank) {
        return rank == size - 1 ? Where::kDevice : Where::kHost;
    };
    if (size == 1) {
        GTEST_SKIP() << "one host rank is the previous module's";
    }
    Job job(size, "auto");
    for (const std::size_t count : {1, 257, 20011}) {
        for (const auto &send : {first_on_host, last_on_device, on_device}) {
            for (const auto &recv : {first_on_host, last_on_device}) {
                check_sum(job, gpu, size, count, send, recv, false);
            }
            check_sum(job, gpu, size, count, send, send, true);
        }
    }
}

// Each rank that is at work at the same time has a bounce, and no later call makes another.
TEST_P(RanksInOneProcess, ARepeatedCallAllocatesNothing)
{
    const int size = GetParam();
    Job job(size, "ring");
    for (int round = 0; round < 4; ++round) {
        check_sum(job, gpu, size, 5000, on_device, on_device, true);
    }
    EXPECT_GE(job.counter(HETCOLL_ALLOCATIONS), 1u);
    EXPECT_LE(job.counter(HETCOLL_ALLOCATIONS), static_cast<std::uint64_t>(size));
}

// Open MPI's progress engine: one thread at a time steps every operation that was started.
class Progress {
public:
    void begin(hetcoll_operation *operation)
    {
        const std::lock_guard lock(mutex_);
        hetcoll_operation_start(operation);
        started_.insert(operation);
    }
    void step()
    {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!lock.owns_lock()) {
            return;
        }
        std::erase_if(started_, [](hetcoll_operation *operation) {
            int result = 0;
            const bool done = hetcoll_operation_step(operation, &result) != 0;
            EXPECT_TRUE(!done || result == HETCOLL_SUCCESS) << result;
            return done;
        });
    }
    [[nodiscard]] bool is_done(hetcoll_operation *operation)
    {
        const std::lock_guard lock(mutex_);
        return !started_.contains(operation);
    }

private:
    std::mutex mutex_;
    std::set<hetcoll_operation *> started_;
};

// The work of one thread with its communicator: blocking, nonblocking and persistent calls in turn,
// five buffers in flight at the same time.
void call_in_turn(Progress &progress, const Gpu &gpu, hetcoll_comm *comm, int calls)
{
    constexpr std::size_t kCount = 300; // floats, above the small limit
    constexpr int kBuffers = 5;
    struct One {
        std::unique_ptr<Buffer> buffer;
        hetcoll_call call{};
        hetcoll_operation *persistent = nullptr, *once = nullptr;
    };
    std::array<One, kBuffers> all;
    const std::vector<float> ones(kCount, 1);
    for (int i = 0; i < kBuffers; ++i) {
        One &one = all[static_cast<std::size_t>(i)];
        one.buffer = std::make_unique<Buffer>(gpu, i == 0 ? Where::kHost : Where::kDevice, ones);
        one.call = sum_call(*one.buffer, *one.buffer, kCount);
        one.call.op = HETCOLL_MAX;
        one.call.previous_allreduce = nullptr;
        one.persistent = hetcoll_operation_create(comm, &one.call, 1);
    }
    const auto wait = [&](One &one) {
        while (!progress.is_done(one.persistent) ||
               (one.once != nullptr && !progress.is_done(one.once))) {
            progress.step();
        }
        if (one.once != nullptr) {
            hetcoll_operation_destroy(one.once);
            one.once = nullptr;
        }
    };
    for (int i = 0; i < calls; ++i) {
        One &one = all[static_cast<std::size_t>(i % kBuffers)];
        wait(one);
        if (i % 3 == 0) {
            ASSERT_EQ(hetcoll_allreduce(comm, &one.call), HETCOLL_SUCCESS);
        } else if (i % 3 == 1) {
            one.once = hetcoll_operation_create(comm, &one.call, 0);
            progress.begin(one.once);
        } else {
            progress.begin(one.persistent);
        }
    }
    for (One &one : all) {
        wait(one);
        EXPECT_EQ(one.buffer->read(), ones);
        hetcoll_operation_destroy(one.persistent);
    }
}

// As MPI_THREAD_MULTIPLE allows it, with a thread that only makes progress besides.
TEST(ThreadsInOneProcess, TenThousandCallsOfAllKindsOnFourCommunicators)
{
    const Gpu gpu;
    if (!gpu.usable()) {
        GTEST_SKIP() << "no CUDA driver, or no device";
    }
    constexpr int kRanks = 2, kCommunicators = 4, kCalls = 10'000;
    Job job(kRanks, "auto");
    std::array<Progress, kRanks> progress; // each rank has its own
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads, helpers;
    for (int c = 0; c < kCommunicators; ++c) {
        const std::vector<hetcoll_comm *> comms = job.make_communicator(kRanks);
        for (std::size_t rank = 0; rank < kRanks; ++rank) {
            threads.emplace_back([&, rank, comm = comms[rank]] {
                gpu.enter();
                call_in_turn(progress[rank], gpu, comm, kCalls / kCommunicators);
            });
        }
    }
    for (Progress &one : progress) {
        helpers.emplace_back([&] {
            while (!stop) {
                one.step();
                std::this_thread::yield();
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    stop = true;
    for (std::thread &helper : helpers) {
        helper.join();
    }
    EXPECT_EQ(job.counter(HETCOLL_CALLS_FAILED), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ranks, RanksInOneProcess, ::testing::Values(1, 2, 3, 4, 5, 8));

} // namespace
} // namespace hetcoll
