// R15: four threads reduce host and device memory of all sizes at the same time, each on a
// communicator of its own: nothing that they share may be unguarded. With "many": 10,000 small
// calls of all kinds instead.
#include "measure/persistent.h"
#include "test/mpi/check.h"

#include <array>
#include <cstring>
#include <thread>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr int kThreads = 4;

void work(Program &program, MPI_Comm comm, int thread)
{
    const Gpu &gpu = program.gpu();
    gpu.driver().cuCtxSetCurrent(gpu.context());
    for (int i = 0; i < 24; ++i) {
        const bool device = (i + thread) % 3 != 0;
        const Memory memory = device ? Memory::kDevice : Memory::kHost;
        const std::size_t count = std::size_t{3} << (i + 5 * thread) % 17;
        const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kRandom,
                              static_cast<std::uint32_t>(100 * thread + i)};
        check_allreduce(program, comm, {pattern, count, memory, memory, i % 2 == 0});
    }
}

// Each thread: blocking, nonblocking and persistent calls in turn, several outstanding together.
void work_much(Program &program, MPI_Comm comm, int thread)
{
    constexpr int kCalls = 10'000 / kThreads, kOutstanding = 5, kCount = 300;
    const Gpu &gpu = program.gpu();
    gpu.driver().cuCtxSetCurrent(gpu.context());
    struct One {
        Buffer buffer;
        MPI_Request started = MPI_REQUEST_NULL, persistent = MPI_REQUEST_NULL;
    };
    std::array<One, kOutstanding> all;
    const std::vector<int> ones(kCount, 1);
    for (int i = 0; i < kOutstanding; ++i) {
        auto made =
            Buffer::allocate(&gpu, i == 0 ? Memory::kHost : Memory::kDevice, kCount * sizeof(int));
        program.require(made.status());
        One &one = all[static_cast<std::size_t>(i)];
        one.buffer = std::move(*made);
        program.require(one.buffer.write(0, ones.data(), kCount * sizeof(int)));
        HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, one.buffer.data(), kCount, MPI_INT, MPI_MAX, comm,
                               MPI_INFO_NULL, &one.persistent);
    }
    for (int i = 0; i < kCalls; ++i) {
        One &one = all[static_cast<std::size_t>(i % kOutstanding)];
        MPI_Wait(&one.started, MPI_STATUS_IGNORE);
        switch ((i + thread) % 3) {
        case 0:
            MPI_Allreduce(MPI_IN_PLACE, one.buffer.data(), kCount, MPI_INT, MPI_MAX, comm);
            break;
        case 1:
            MPI_Iallreduce(MPI_IN_PLACE, one.buffer.data(), kCount, MPI_INT, MPI_MAX, comm,
                           &one.started);
            break;
        default: MPI_Start(&one.persistent); one.started = one.persistent;
        }
    }
    for (One &one : all) {
        MPI_Wait(&one.started, MPI_STATUS_IGNORE);
        std::vector<int> result(kCount);
        program.require(one.buffer.read(0, result.data(), kCount * sizeof(int)));
        program.check(result == ones, "thread %d: a buffer of ones is no longer that", thread);
        MPI_Request_free(&one.persistent);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "threads", MPI_THREAD_MULTIPLE);
    program.gpu();
    const bool many = argc > 1 && std::strcmp(argv[1], "many") == 0;
    std::array<MPI_Comm, kThreads> comms{};
    for (MPI_Comm &comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&program, many, comm = comms[static_cast<std::size_t>(i)], i] {
            many ? work_much(program, comm, i) : work(program, comm, i);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (MPI_Comm &comm : comms) {
        MPI_Comm_free(&comm);
    }
    return program.finish();
}
