// Ranks that come late to calls of all kinds, for test/mpi/stops.sh. stops COUNT MILLISECONDS SEED
// [leaves]: in CALLS calls a rank comes later than the others. It is stopped, sleeps,
// computes or waits for a message meanwhile. Before each of them a line says which one, how, and in
// which call. "leaves": from one more call a rank has gone for good, and the others end after twice
// the time, because nobody else ends their wait.
#include "test/mpi/check.h"

#include "measure/persistent.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>

namespace hetcoll::test {
namespace {

constexpr int kLarge = 100'000, kSmall = 2; // elements

void sleep_ms(int ms)
{
    timespec left{.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000L};
    while (nanosleep(&left, &left) != 0) {
    }
}

// Another process stops this one, which waits for that one's end meanwhile: then nothing can stop
// it after it was to go on.
void stay_stopped(int ms)
{
    const pid_t late = getpid(), child = fork();
    if (child == 0) {
        kill(late, SIGSTOP);
        sleep_ms(ms);
        kill(late, SIGCONT);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

void stay_away(unsigned how, int ms)
{
    const double end = MPI_Wtime() + ms / 1e3;
    switch (how) {
    case 0: return stay_stopped(ms);
    case 1: return sleep_ms(ms);
    case 2:
        while (MPI_Wtime() < end) { // computes
        }
        return;
    default:
        while (MPI_Wtime() < end) { // for a message that does not come
            int there = 0;
            MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
        }
    }
}

struct Vectors {
    Buffer host, device, result;
    MPI_Request persistent = MPI_REQUEST_NULL; // of an allreduce of `device`
};

Buffer allocate(Program &program, Memory memory)
{
    auto made =
        Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(), memory,
                         kLarge * sizeof(float) * static_cast<std::size_t>(program.ranks()));
    if (!made.ok()) {
        program.require(made.status());
    }
    return std::move(*made);
}

constexpr unsigned kCalls = 10;

int call(Program &program, Vectors &vectors, unsigned which)
{
    const MPI_Comm comm = MPI_COMM_WORLD;
    void *const device = vectors.device.data(), *const host = vectors.host.data();
    void *const result = vectors.result.data();
    MPI_Request request = MPI_REQUEST_NULL;
    switch (which) {
    case 0: return MPI_Allreduce(MPI_IN_PLACE, host, kSmall, MPI_FLOAT, MPI_SUM, comm);
    case 1: return MPI_Allreduce(MPI_IN_PLACE, device, kSmall, MPI_FLOAT, MPI_SUM, comm);
    case 2: return MPI_Allreduce(MPI_IN_PLACE, host, kLarge, MPI_FLOAT, MPI_SUM, comm);
    case 3: return MPI_Allreduce(MPI_IN_PLACE, device, kLarge, MPI_FLOAT, MPI_SUM, comm);
    case 4: return MPI_Bcast(device, kLarge, MPI_FLOAT, program.ranks() - 1, comm);
    case 5: return MPI_Reduce(device, result, kLarge, MPI_FLOAT, MPI_SUM, 0, comm);
    case 6: return MPI_Allgather(device, kLarge, MPI_FLOAT, result, kLarge, MPI_FLOAT, comm);
    case 7: return MPI_Reduce_scatter_block(result, device, kLarge, MPI_FLOAT, MPI_SUM, comm);
    case 8: MPI_Start(&vectors.persistent); return MPI_Wait(&vectors.persistent, MPI_STATUS_IGNORE);
    default:
        MPI_Iallreduce(MPI_IN_PLACE, device, kLarge, MPI_FLOAT, MPI_SUM, comm, &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

void say_stop(int number, unsigned which, int rank, const char *how)
{
    std::printf("note stop call %d kind %u rank %d %s\n", number, which, rank, how);
    std::fflush(stdout);
}

// In an order that all ranks draw alike.
void run(Program &program, int count, int ms, unsigned seed, bool leaves)
{
    Vectors vectors{allocate(program, Memory::kHost), allocate(program, Memory::kDevice),
                    allocate(program, Memory::kDevice)};
    HETCOLL_ALLREDUCE_INIT(MPI_IN_PLACE, vectors.device.data(), kLarge, MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &vectors.persistent);
    std::mt19937 random(seed);
    for (unsigned which = 0; which < kCalls; ++which) {
        program.check(call(program, vectors, which) == MPI_SUCCESS, "call %u fails", which);
    }
    MPI_Barrier(MPI_COMM_WORLD); // the first calls may end seconds apart
    constexpr const char *kHow[] = {"stopped", "sleeps", "computes", "waits"};
    for (int stop = 0; stop < count; ++stop) {
        const auto which = static_cast<unsigned>(random() % kCalls);
        const auto how = static_cast<unsigned>(random() % std::size(kHow));
        const auto late = static_cast<int>(random() % static_cast<unsigned>(program.ranks()));
        if (program.rank() == late) {
            say_stop(static_cast<int>(kCalls) + stop + 1, which, late, kHow[how]);
            stay_away(how, ms);
        }
        program.check(call(program, vectors, which) == MPI_SUCCESS, "call %u fails", which);
    }
    if (leaves) {
        const auto which = static_cast<unsigned>(random() % kCalls);
        const auto late = static_cast<int>(random() % static_cast<unsigned>(program.ranks()));
        if (program.rank() == late) {
            say_stop(static_cast<int>(kCalls) + count + 1, which, late, "left");
            raise(SIGKILL);
        }
        alarm(static_cast<unsigned>(2 * ms / 1000));
        call(program, vectors, which);
        program.check(false, "call %u ends without rank %d", which, late);
    }
    MPI_Request_free(&vectors.persistent);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "stops");
    if (argc != 4 && argc != 5) {
        program.check(false, "usage: stops COUNT MILLISECONDS SEED [leaves]");
        return program.finish();
    }
    run(program, std::atoi(argv[1]), std::atoi(argv[2]), static_cast<unsigned>(std::atoi(argv[3])),
        argc == 5);
    return program.finish();
}
