// Jobs that cannot go on must end, with MPI_ERRORS_ARE_FATAL and by themselves.
// The first argument says what breaks them.
#include "test/mpi/check.h"

#include <sys/time.h>

#include <csignal>
#include <cstdio>
#include <string_view>

namespace hetcoll::test {
namespace {

const Pattern kSum{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1};

void reduce(Program &program, std::size_t count)
{
    Buffers buffers(program, MPI_COMM_WORLD, {kSum, count});
    buffers.fill();
    buffers.reduce();
}

// Rank 0 has the shorter vector, so that a longer message than it expects fails in Open MPI.
void messages_too_long(Program &program, std::size_t count)
{
    reduce(program, program.rank() == 0 ? count : 2 * count);
}

void driver_fails(Program &program)
{
    Buffers buffers(program, MPI_COMM_WORLD, {kSum, 100'000});
    buffers.fill();
    buffers.reduce(); // the first tries with a kernel whether the ranks reach each other
    MPI_Barrier(MPI_COMM_WORLD);
    if (program.rank() == 0) { // launches a kernel whatever the algorithm
        Emulated().set_faults("cuLaunchKernel:1:999");
    }
    buffers.reduce();
}

void rank_is_killed(Program &program)
{
    for (int i = 0; i < 100'000; ++i) {
        if (program.rank() == 1 && i == 20) {
            std::raise(SIGKILL);
        }
        reduce(program, 100'000);
    }
}

// One rank's GPU stands still, so that it is certainly in the middle of a collective, and the
// others wait for it there, when it is killed.
void rank_is_killed_within(Program &program)
{
    Buffers buffers(program, MPI_COMM_WORLD, {kSum, 1'000'000});
    buffers.fill();
    buffers.reduce();
    program.check_algorithm();
    MPI_Barrier(MPI_COMM_WORLD);
    if (program.rank() == 1) {
        Emulated().hold_devices(true);
        const Driver &driver =
            program.gpu().driver(); // a leader's peers start no work of their own
        driver.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(buffers.recv()), 0, 1, nullptr);
        std::signal(SIGALRM, [](int) { std::raise(SIGKILL); });
        itimerval soon{};
        soon.it_value.tv_usec = 300'000;
        setitimer(ITIMER_REAL, &soon, nullptr);
    }
    buffers.reduce();
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view what = argc > 1 ? argv[1] : "";
    Program program(argc, argv, "aborts");
    program.gpu();
    if (what == "small_message") {
        messages_too_long(program, 10);
    } else if (what == "large_message") {
        messages_too_long(program, 100'000);
    } else if (what == "driver") {
        driver_fails(program);
    } else if (what == "killed") {
        rank_is_killed(program);
    } else if (what == "killed_within") {
        rank_is_killed_within(program);
    } else {
        std::fprintf(stderr,
                     "usage: aborts small_message|large_message|driver|killed|killed_within\n");
        return 2;
    }
    MPI_Barrier(MPI_COMM_WORLD); // a rank may have had its result before another one failed
    program.check(false, "the job went on after '%s'", argv[1]);
    return program.finish();
}
