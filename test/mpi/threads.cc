// Four threads reduce at the same time, each on a communicator of its own, host and device memory
// of all sizes: nothing that they share may be unguarded.
#include "test/mpi/check.h"

#include <array>
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

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "threads", MPI_THREAD_MULTIPLE);
    program.gpu();
    std::array<MPI_Comm, kThreads> comms{};
    for (MPI_Comm &comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back(
            [&program, comm = comms[static_cast<std::size_t>(i)], i] { work(program, comm, i); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (MPI_Comm &comm : comms) {
        MPI_Comm_free(&comm);
    }
    return program.finish();
}
