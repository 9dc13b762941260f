// What a host Allreduce costs if hetcoll is in the job (R2): no driver call and no allocation by
// hetcoll, and no message by hetcoll either if no rank can have a GPU. With the argument "no_gpu"
// the job must have no GPU.
#include "test/mpi/check.h"
#include "test/mpi/own_allocations.h"

#include <array>
#include <cstdlib>
#include <cstring>

namespace hetcoll::test {
namespace {

long allocations = 0;

bool count_allocation()
{
    ++allocations;
    return true;
}

constexpr int kCalls = 50;
double static_in[1'000], static_out[1'000];

template <class Reduce>
void check_costs(Program &program, bool no_gpu, int count, const char *where, const Reduce &reduce)
{
    for (int i = 0; i < 3; ++i) {
        reduce();
    }
    const Emulated emulated;
    const std::uint64_t driver_calls = emulated.calls("all_calls");
    const CounterValues before = program.counters().read();
    allocations = 0;
    watch_own_allocations(count_allocation);
    for (int i = 0; i < kCalls; ++i) {
        reduce();
    }
    watch_own_allocations(nullptr);
    const CounterValues used = program.counters().read() - before;
    const auto made = static_cast<unsigned long long>(emulated.calls("all_calls") - driver_calls);
    program.check(made == 0, "%llu driver calls in %d calls with %d elements %s", made, kCalls,
                  count, where);
    program.check(allocations == 0, "%ld allocations of hetcoll in %d calls with %d elements %s",
                  allocations, kCalls, count, where);
    program.check(used[HETCOLL_ALLOCATIONS] == 0, "hetcoll says that it allocated");
    if (no_gpu) {
        program.check(program.counters().available(), "hetcoll is not in this job");
        for (int i = 0; i < HETCOLL_COUNTER_COUNT; ++i) {
            program.check(used[static_cast<hetcoll_counter>(i)] == 0, "hetcoll was called, %s",
                          where);
        }
        program.check(!emulated.present(), "the driver was loaded though there is no GPU");
    }
}

void one_place(Program &program, bool no_gpu, const char *where, const double *in, double *out,
               int count)
{
    check_costs(program, no_gpu, count, where,
                [&] { MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
}

// R24: the bits on which Horovod's ranks agree in every cycle, a thousand times a second.
void negotiation(Program &program, bool no_gpu)
{
    for (const int count : {1, 2, 3}) {
        std::array<long long, 3> all{-1, -1, -1}, any{};
        all[0] = ~(1LL << program.rank());
        any[0] = 1LL << program.rank();
        check_costs(program, no_gpu, count, "in place, bits", [&] {
            MPI_Allreduce(MPI_IN_PLACE, all.data(), count, MPI_LONG_LONG_INT, MPI_BAND,
                          MPI_COMM_WORLD);
            MPI_Allreduce(MPI_IN_PLACE, any.data(), count, MPI_LONG_LONG_INT, MPI_BOR,
                          MPI_COMM_WORLD);
        });
        const long long ranks = (1LL << program.ranks()) - 1;
        program.check(all[0] == ~ranks && any[0] == ranks, "the bits are %llx and %llx",
                      static_cast<unsigned long long>(all[0]),
                      static_cast<unsigned long long>(any[0]));
    }
}

void every_place(Program &program, bool no_gpu)
{
    negotiation(program, no_gpu);
    for (const int count : {1, 3, 1'000}) {
        std::array<double, 1'000> in{}, out{};
        one_place(program, no_gpu, "on the stack", in.data(), out.data(), count);
        one_place(program, no_gpu, "in static memory", static_in, static_out, count);
    }
#ifndef __SANITIZE_ADDRESS__ // whose heap is not the program's
    for (const int count : {1, 3, 1'000, 8'192}) {
        const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(double);
        auto *in = static_cast<double *>(std::calloc(1, bytes));
        auto *out = static_cast<double *>(std::malloc(bytes));
        one_place(program, no_gpu, "on the heap", in, out, count);
        std::free(in);
        std::free(out);
    }
#endif
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const bool no_gpu = argc > 1 && std::strcmp(argv[1], "no_gpu") == 0;
    Program program(argc, argv, "host_path");
    every_place(program, no_gpu);
    if (!no_gpu) {
        program.gpu(); // now this process has a context, and the driver could be asked
        every_place(program, no_gpu);
    }
    return program.finish();
}
