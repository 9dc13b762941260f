// A rank dies, or one revokes the communicator: failures HOW MEMORY COUNT WAY [MS]. For mpirun
// --with-ft ulfm of Open MPI 5.0 and later; MPI_Finalize may hang after a death there, so ranks
// leave by _exit, and rank 0 of those that are left says "ok failures".
//
// HOW: "before"  the last rank dies on its way to a call in which the others wait
//      "first"   the same in a communicator's first call
//      "between" it dies, and the others call later
//      "known"   the same, and Open MPI has told them by then, so it refuses the call itself
//      "revoke"  rank 0 revokes the communicator while the others wait in a call
//      "random"  it dies MS milliseconds after calls have begun on a new communicator
//      "slow"    the same, and rank 0's GPU takes its time: nobody may touch what a failed call had
//      "driver"  rank EMU_FAIL_RANK dies in a driver call that EMU_FAIL names; each call has new
//                memory
//      "series"  one after the other dies, until two are left; then 20 revokes, or as many as MS
//                says
// WAY: "blocking", "nonblocking" or "persistent", or "queued" on a stream. For other collectives:
// "bcast", "reduce", "allgather" and "reduce_scatter_block", which are hetcoll's own on device
// memory, "ibcast" and "alltoall", which are staged.
//
// The calls before a failure, and those of the ranks that are left, are served by the algorithm
// that coll_hetcoll_algorithm names, if that can. An aggregator (with_aggregators.sh) writes its
// statistics when those that are left have a communicator there.
#include "test/mpi/calls_in_place.h"

#include <malloc.h>
#include <mpi-ext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
#include <csignal>

namespace hetcoll::test {
namespace {

constexpr int kNobody = -1;
constexpr double kMostSeconds = 2; // from a death to the end of the others' calls

double now()
{
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Case {
    std::string_view how, way;
    Memory memory;
    std::size_t count;
    double after; // seconds
    int revokes;
};

CallInPlace call_of(const Case &what) { return {what.way, what.memory, what.count}; }

// Calls on one communicator, over and over.
class Calls : public CallsInPlace {
public:
    Calls(Program &program, MPI_Comm comm, const Case &what)
        : CallsInPlace(program, comm, call_of(what)), program_(program),
          bytes_(what.count * sizeof(float))
    {
    }
    // The call has failed, so the buffer is this rank's again, and stays so.
    void check_untouched(double seconds)
    {
        std::vector<char> mine(bytes_, '\x07'), now_there(bytes_);
        const Buffer &buffer = buffers().recv_buffer();
        const std::size_t first = buffers().recv_start();
        program_.require(buffer.write(first, mine.data(), mine.size()));
        for (const double end = now() + seconds; now() < end; usleep(10'000)) {
            program_.require(buffer.read(first, now_there.data(), now_there.size()));
            if (now_there != mine) {
                program_.check(false, "a buffer was written after its call had failed");
                return;
            }
        }
    }

private:
    Program &program_;
    std::size_t bytes_;
};

// The calls that the algorithm of coll_hetcoll_algorithm has served; -1: it cannot serve this one.
long calls_served(const Program &program, const Case &what)
{
    const char *const name = std::getenv("OMPI_MCA_coll_hetcoll_algorithm");
    const bool can = what.memory == Memory::kDevice && name != nullptr;
    const auto counter = can ? counter_of_call(name, what.count * sizeof(float)) : std::nullopt;
    return counter ? static_cast<long>(program.counters().read()[*counter]) : -1;
}

// Its ranks read each other's buffers on the node.
bool maps_peers(const Case &what)
{
    const char *const name = std::getenv("OMPI_MCA_coll_hetcoll_algorithm");
    return what.memory == Memory::kDevice && name != nullptr &&
           std::string_view(name) == "two_shot";
}

// Who of the one is not of the other: that rank alone, or nobody.
void check_dead(Program &program, MPI_Comm broken, MPI_Comm shrunk, int victim)
{
    MPI_Group all = MPI_GROUP_NULL, rest = MPI_GROUP_NULL, dead = MPI_GROUP_NULL;
    MPI_Comm_group(broken, &all);
    MPI_Comm_group(shrunk, &rest);
    MPI_Group_difference(all, rest, &dead);
    int count = 0, first = 0, rank = kNobody;
    MPI_Group_size(dead, &count);
    if (count > 0) {
        MPI_Group_translate_ranks(dead, 1, &first, all, &rank);
    }
    program.check(count <= 1 && rank == victim, "%d ranks are gone, the first is %d, not %d", count,
                  rank, victim);
    for (MPI_Group *group : {&all, &rest, &dead}) {
        if (*group != MPI_GROUP_EMPTY) {
            MPI_Group_free(group);
        }
    }
}

// Its statistics say whom it serves then.
void ask_aggregator(MPI_Comm comm)
{
    const char *const server = std::getenv("HETCOLL_TEST_AGGREGATOR");
    MPI_Barrier(comm);
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    if (rank == 0 && server != nullptr) {
        usleep(200'000); // it sees who has left
        kill(static_cast<pid_t>(std::atoi(server)), SIGUSR1);
        usleep(200'000);
    }
    MPI_Barrier(comm);
}

MPI_Comm copy_of(MPI_Comm comm)
{
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(comm, &copy);
    return copy;
}

int size_of(MPI_Comm comm)
{
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

int rank_in(MPI_Comm comm)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}

// As Open MPI knows by now.
int count_failed(MPI_Comm comm)
{
    MPI_Group failed = MPI_GROUP_NULL;
    int count = 0;
    MPIX_Comm_get_failed(comm, &failed);
    MPI_Group_size(failed, &count);
    if (failed != MPI_GROUP_EMPTY) {
        MPI_Group_free(&failed);
    }
    return count;
}

void die_at(double when)
{
    std::signal(SIGALRM, [](int) { std::raise(SIGKILL); });
    const double left = std::max(when - now(), 1e-6);
    timer_t timer = nullptr;
    timer_create(CLOCK_MONOTONIC, nullptr, &timer);
    const auto seconds = static_cast<time_t>(left);
    const itimerspec after{
        {0, 0}, {seconds, static_cast<long>((left - static_cast<double>(seconds)) * 1e9)}};
    timer_settime(timer, 0, &after, nullptr);
}

// A failed communicator stays failed; then those that are left have a communicator of their own,
// which sums.
MPI_Comm recover(Program &program, MPI_Comm broken, Calls &calls, int victim, const Case &what)
{
    const int again = calls.run();
    program.check(again == MPIX_ERR_PROC_FAILED || again == MPIX_ERR_REVOKED,
                  "a call after the failed one: class %d", again);
    MPIX_Comm_revoke(broken);
    calls.check_untouched(what.how == "slow" ? 1.5 : 0.05);
    MPI_Comm shrunk = MPI_COMM_NULL;
    program.check(MPIX_Comm_shrink(broken, &shrunk) == MPI_SUCCESS, "shrink failed");
    check_dead(program, broken, shrunk, victim);
    int all = 1;
    program.check(MPIX_Comm_agree(shrunk, &all) == MPI_SUCCESS && all == 1, "agree failed");
    Calls calls_of_rest(program, shrunk, what);
    const long before = calls_served(program, what);
    for (int call = 0; call < 3; ++call) {
        const int code = calls_of_rest.run();
        program.check(code == MPI_SUCCESS, "class %d on the shrunk communicator", code);
        calls_of_rest.check();
    }
    if (before >= 0 && calls_of_rest.is_allreduce()) {
        const long served = calls_served(program, what) - before;
        // In a communicator's first small call the ranks learn that there is device memory.
        const long wanted = what.count * sizeof(float) <= kSmallBytes ? 2 : 3;
        program.check(served == wanted, "%ld of %ld calls were served by the algorithm", served,
                      wanted);
    }
    return shrunk;
}

// A rank dies in a call of its driver: the others' call of that moment began before, or soon after.
MPI_Comm fail_in_driver(Program &program, MPI_Comm parent, const Case &what)
{
    MPI_Comm comm = copy_of(parent);
    const char *const victim = std::getenv("EMU_FAIL_RANK");
    for (int call = 0; call < 40 && victim != nullptr; ++call) {
        Calls calls(program, comm, what);
        const double start = now();
        const int code = calls.run();
        if (code == MPI_SUCCESS) {
            program.check(calls.is_right(), "a wrong result in call %d", call);
            continue;
        }
        program.check(code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, "class %d", code);
        program.check(now() - start < kMostSeconds, "returned after %.2f s", now() - start);
        std::printf("note rank %d: class %d in call %d\n", program.rank(), code, call);
        MPI_Comm shrunk = recover(program, comm, calls, std::atoi(victim), what);
        calls.end();
        MPI_Comm_free(&comm);
        ask_aggregator(shrunk);
        return shrunk;
    }
    program.check(false,
                  "nobody died in 40 calls: EMU_FAIL and EMU_FAIL_RANK name the driver call");
    return comm;
}

// One communicator breaks. Those that are left: theirs, and how long they took.
MPI_Comm fail_once(Program &program, MPI_Comm parent, const Case &what)
{
    MPI_Comm comm = copy_of(parent);
    const int size = size_of(comm), rank = rank_in(comm), victim = size - 1;
    const bool revoke = what.how == "revoke", random = what.how == "random" || what.how == "slow";
    Calls calls(program, comm, what);
    for (int call = 0; call < 2 && what.how != "first" && what.how != "random"; ++call) {
        program.check(calls.run() == MPI_SUCCESS, "call %d failed", call);
        calls.check();
    }
    const bool maps = maps_peers(what) && !revoke && !random && what.how != "first";
    const Emulated driver;
    const std::uint64_t unmapped = driver.calls("cuIpcCloseMemHandle");
    const long served = calls_served(program, what);
    program.check(served != 0 || what.how == "first" || random || !calls.is_allreduce(),
                  "no call was served by the algorithm");
    MPI_Barrier(parent);
    double when = now() + (random ? what.after : 0.3);
    MPI_Bcast(&when, 1, MPI_DOUBLE, 0, parent); // one machine, one clock
    if (rank == victim && !revoke) {
        die_at(when);
    }
    if (rank == 0 && revoke) {
        usleep(300'000);
        MPIX_Comm_revoke(comm);
    }
    const bool later = what.how == "between" || what.how == "known";
    if (later) {
        usleep(rank == victim ? 10'000'000 : 600'000);
    } else if (rank == victim && !revoke && !random) {
        usleep(10'000'000);
    }
    if (what.how == "known") {
        const double end = when + kMostSeconds;
        int is_there = 0, told = MPI_SUCCESS; // others may have revoked it already
        while (count_failed(comm) == 0 && told == MPI_SUCCESS && now() < end) {
            told = MPI_Iprobe(0, 0, comm, &is_there, MPI_STATUS_IGNORE);
        }
        program.check(count_failed(comm) == 1 || told != MPI_SUCCESS, "nobody is known to be dead");
    }
    int code = MPI_SUCCESS, made = 0;
    while (code == MPI_SUCCESS && now() < when + 20) {
        code = calls.run();
        program.check(code != MPI_SUCCESS || calls.is_right(), "a wrong result in call %d", made);
        ++made;
    }
    const double took = now() - when;
    program.check(code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, "class %d", code);
    program.check(took < kMostSeconds + (later ? 0.3 : 0), "returned after %.2f s", took);
    program.check(made == 1 || random || (revoke && !calls.is_allreduce()),
                  "call %d failed, not the first that lacked a rank", made);
    std::printf("note rank %d: class %d after %d calls, %.3f s after the failure\n", rank, code,
                made, took);
    MPI_Comm shrunk = recover(program, comm, calls, revoke ? kNobody : victim, what);
    calls.end();
    MPI_Comm_free(&comm);
    program.check(!maps || driver.calls("cuIpcCloseMemHandle") > unmapped,
                  "the dead rank's memory is mapped still");
    ask_aggregator(shrunk);
    return shrunk;
}

struct Held {
    long descriptors, kilobytes, of_malloc; // the last in KiB, too
};

Held held()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    std::ifstream file("/proc/self/statm");
    long pages = 0, resident = 0;
    file >> pages >> resident;
    const struct mallinfo2 heap = mallinfo2();
    return {std::distance(begin(all), end(all)), resident * (sysconf(_SC_PAGESIZE) / 1024),
            static_cast<long>((heap.uordblks + heap.hblkhd) / 1024)};
}

void note_held(const Program &program, const Case &what, int failures, const Held &now)
{
    std::printf("note rank %d: after %d failures (%s): %ld descriptors, %ld KiB, %ld of malloc\n",
                program.rank(), failures, std::string(what.how).c_str(), now.descriptors,
                now.kilobytes, now.of_malloc);
}

// Nothing of hetcoll's is left behind by failures, from the second on: what it has for a
// communicator is 38 KiB of malloc at least. Open MPI keeps 2 KiB of its own for each failure.
MPI_Comm fail_often(Program &program, MPI_Comm comm, const Case &what, int failures)
{
    constexpr long kMostPerFailure = 8, kMostOnce = 256; // KiB
    Held after_two{};
    for (int failure = 1; failure <= failures; ++failure) {
        MPI_Comm rest = fail_once(program, comm, what);
        MPI_Comm_free(&comm);
        comm = rest;
        if (failure == 2) {
            after_two = held();
        }
        if (failure == 2 || failure % 20 == 0 || failure == failures) {
            note_held(program, what, failure, held());
        }
    }
    const Held last = held();
    program.check(last.descriptors <= after_two.descriptors, "%ld descriptors, %ld before",
                  last.descriptors, after_two.descriptors);
    const long most = kMostOnce + kMostPerFailure * (failures - 2);
    program.check(last.kilobytes <= after_two.kilobytes + most, "%ld KiB, %ld before",
                  last.kilobytes, after_two.kilobytes);
    program.check(last.of_malloc <= after_two.of_malloc + most, "%ld KiB of malloc, %ld before",
                  last.of_malloc, after_two.of_malloc);
    return comm;
}

MPI_Comm series(Program &program, MPI_Comm comm, Case what)
{
    // Each vector has pages of its own, which go with it. Else malloc keeps them, and a block that
    // lies between two of them looks like a leak of a vector.
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    what.how = "before";
    comm = fail_often(program, comm, what, size_of(comm) - 2);
    what.how = "revoke";
    return fail_often(program, comm, what, what.revokes);
}

void run(Program &program, const Case &what)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm all = copy_of(MPI_COMM_WORLD);
    MPI_Comm rest = what.how == "series"   ? series(program, all, what)
                    : what.how == "driver" ? fail_in_driver(program, all, what)
                                           : fail_once(program, all, what);
    int failures = program.failures() == 0 ? 0 : 1, failed = 0;
    MPI_Reduce(&failures, &failed, 1, MPI_INT, MPI_SUM, 0, rest);
    if (rank_in(rest) == 0) {
        std::printf(failed == 0 ? "ok failures\n" : "failures on %d ranks\n", failed);
    }
    std::fflush(stdout);
    MPI_Barrier(rest);
    usleep(100'000);
    _exit(failed == 0 ? 0 : 1);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll;
    if (argc < 5 || !find_memory(argv[2])) {
        std::fprintf(stderr, "usage: failures HOW MEMORY COUNT WAY [MS]\n");
        return 2;
    }
    const char *const rank = std::getenv("PMIX_RANK");
    if (std::string_view(argv[1]) == "slow" && rank != nullptr && std::strcmp(rank, "0") == 0) {
        setenv("EMU_DELAY_US", "200000", 1);
    }
    test::Program program(argc, argv, "failures",
                          std::string_view(argv[4]) == "queued" ? MPI_THREAD_MULTIPLE
                                                                : MPI_THREAD_SINGLE);
    test::run(program, {.how = argv[1],
                        .way = argv[4],
                        .memory = *find_memory(argv[2]),
                        .count = std::strtoul(argv[3], nullptr, 0),
                        .after = argc > 5 ? std::strtod(argv[5], nullptr) * 1e-3 : 0.2,
                        .revokes = argc > 5 ? std::atoi(argv[5]) : 20});
}
#else
int main(int argc, char **argv)
{
    hetcoll::test::Program program(argc, argv, "failures");
    if (program.rank() == 0) {
        std::printf("skip failures: this Open MPI has no MPIX_Comm_revoke\n");
    }
    return program.finish();
}
#endif
