// Checks the cost of a host Allreduce if hetcoll is in the job (R2): no driver call and no
// allocation by hetcoll, and no message by hetcoll either if no rank can have a GPU. And how much
// memory a communicator of such calls takes. With the argument "no_gpu" the job must have no GPU.
#include "test/mpi/check.h"
#include "test/mpi/own_allocations.h"

#include <malloc.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

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

// This process's, by the allocator's own count.
std::size_t heap_bytes()
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

MPI_Comm duplicate_that_reduces(Program &program)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int one = 1;
    int sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    program.check(sum == program.ranks(), "a wrong sum: %d", sum);
    return comm;
}

// With what Open MPI keeps for it, which in 4.1 is 8.4 kB.
[[maybe_unused]] void check_weight(Program &program)
{
    constexpr std::size_t kMostBytes = 16'000, kComms = 100;
    std::vector<MPI_Comm> comms;
    comms.reserve(2 * kComms);
    std::size_t before = 0;
    while (comms.size() < comms.capacity()) {
        if (comms.size() == kComms) { // tables of Open MPI's have grown
            before = heap_bytes();
        }
        comms.push_back(duplicate_that_reduces(program));
    }
    const std::size_t each = (heap_bytes() - before) / kComms;
    program.check(each <= kMostBytes, "a communicator takes %zu bytes of the heap, more than %zu",
                  each, kMostBytes);
    for (MPI_Comm &comm : comms) {
        MPI_Comm_free(&comm);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const bool no_gpu = argc > 1 && std::strcmp(argv[1], "no_gpu") == 0;
    Program program(argc, argv, "host_path");
    every_place(program, no_gpu);
#if !defined(__SANITIZE_ADDRESS__) && OMPI_MAJOR_VERSION == 4 // others keep another amount
    check_weight(program);
#endif
    if (!no_gpu) {
        program.gpu(); // now this process has a context, and the driver could be asked
        every_place(program, no_gpu);
    }
    return program.finish();
}
