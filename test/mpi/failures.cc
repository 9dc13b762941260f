// A rank dies, or one revokes the communicator: failures HOW MEMORY COUNT WAY [MS]. For mpirun
// --with-ft ulfm of Open MPI 5.0 and later; MPI_Finalize may hang after a death there, so ranks
// leave by _exit, and rank 0 of those that are left says "ok failures".
//
// HOW: "before"  the last rank dies on its way to a call in which the others wait
//      "first"   the same in a communicator's first call
//      "between" it dies, and the others call later
//      "revoke"  rank 0 revokes the communicator while the others wait in a call
//      "random"  it dies MS milliseconds after calls have begun on a new communicator
//      "slow"    the same, and rank 0's GPU takes its time: nobody may touch what a failed call had
//      "driver"  the last rank dies in a driver call that EMU_FAIL names; each call has new memory
//      "series"  one after the other dies, until two are left; then 20 revokes
// WAY: "blocking", "nonblocking" or "persistent". Of other collectives, whose results are not
// looked at: "bcast", which is hetcoll's own on device memory, "ibcast" and "alltoall", which are
// staged.
#include "test/mpi/check.h"

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

constexpr Pattern kSum{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1};
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
};

// The sum on one communicator.
class Sums {
public:
    Sums(Program &program, MPI_Comm comm, const Case &what)
        : program_(program), comm_(comm), what_(what), buffers_(program, comm,
                                                                {.pattern = kSum,
                                                                 .count = what.count,
                                                                 .send = what.memory,
                                                                 .recv = what.memory,
                                                                 .in_place = true})
    {
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
    ~Sums()
    {
        if (request_ != MPI_REQUEST_NULL) {
            MPI_Request_free(&request_);
        }
    }
    Sums(const Sums &) = delete;
    Sums &operator=(const Sums &) = delete;

    // An error class.
    int reduce()
    {
        buffers_.fill();
        const int code = start_and_wait();
        int kind = MPI_SUCCESS;
        MPI_Error_class(code, &kind);
        return kind;
    }
    void check()
    {
        if (is_sum()) {
            buffers_.check(false);
        }
    }
    [[nodiscard]] bool is_right() { return !is_sum() || buffers_.is_right(); }

    // The call has failed, so the buffer is this rank's again, and stays so.
    void check_untouched(double seconds)
    {
        std::vector<char> mine(what_.count * sizeof(float), '\x07'), now_there(mine.size());
        const Buffer &buffer = buffers_.recv_buffer();
        const std::size_t first = buffers_.recv_start();
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
    [[nodiscard]] bool is_sum() const
    {
        return what_.way == "blocking" || what_.way == "nonblocking" || what_.way == "persistent";
    }

    int start_and_wait()
    {
        const int count = static_cast<int>(what_.count);
        if (what_.way == "blocking") {
            return MPI_Allreduce(MPI_IN_PLACE, buffers_.recv(), count, MPI_FLOAT, MPI_SUM, comm_);
        }
        int ranks = 0; // the last one is the root, because it is the one that dies
        MPI_Comm_size(comm_, &ranks);
        if (what_.way == "bcast") {
            return MPI_Bcast(buffers_.recv(), count, MPI_FLOAT, ranks - 1, comm_);
        }
        if (what_.way == "alltoall") {
            return MPI_Alltoall(MPI_IN_PLACE, 0, MPI_FLOAT, buffers_.recv(), count / ranks,
                                MPI_FLOAT, comm_);
        }
        int code = MPI_SUCCESS;
        if (what_.way == "ibcast") {
            code = MPI_Ibcast(buffers_.recv(), count, MPI_FLOAT, ranks - 1, comm_, &request_);
            return code == MPI_SUCCESS ? MPI_Wait(&request_, MPI_STATUS_IGNORE) : code;
        }
        if (what_.way == "nonblocking") {
            code = MPI_Iallreduce(MPI_IN_PLACE, buffers_.recv(), count, MPI_FLOAT, MPI_SUM, comm_,
                                  &request_);
        } else {
            if (request_ == MPI_REQUEST_NULL) {
                code = MPI_Allreduce_init(MPI_IN_PLACE, buffers_.recv(), count, MPI_FLOAT, MPI_SUM,
                                          comm_, MPI_INFO_NULL, &request_);
            }
            code = code == MPI_SUCCESS ? MPI_Start(&request_) : code;
        }
        return code == MPI_SUCCESS ? MPI_Wait(&request_, MPI_STATUS_IGNORE) : code;
    }

    Program &program_;
    MPI_Comm comm_;
    const Case what_;
    Buffers buffers_;
    MPI_Request request_ = MPI_REQUEST_NULL;
};

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

// What has failed stays so; then those that are left have a communicator of their own, which sums.
MPI_Comm recover(Program &program, MPI_Comm broken, Sums &sums, int left, const Case &what)
{
    const int again = sums.reduce();
    program.check(again == MPIX_ERR_PROC_FAILED || again == MPIX_ERR_REVOKED,
                  "a call after the failed one: class %d", again);
    MPIX_Comm_revoke(broken);
    sums.check_untouched(what.how == "slow" ? 1.5 : 0.05);
    MPI_Comm shrunk = MPI_COMM_NULL;
    program.check(MPIX_Comm_shrink(broken, &shrunk) == MPI_SUCCESS, "shrink failed");
    program.check(size_of(shrunk) == left, "%d ranks left, not %d", size_of(shrunk), left);
    int all = 1;
    program.check(MPIX_Comm_agree(shrunk, &all) == MPI_SUCCESS && all == 1, "agree failed");
    Sums sums_of_rest(program, shrunk, what);
    for (int call = 0; call < 3; ++call) {
        const int code = sums_of_rest.reduce();
        program.check(code == MPI_SUCCESS, "class %d on the shrunk communicator", code);
        sums_of_rest.check();
    }
    return shrunk;
}

// The last rank dies in a call of its driver: the others' call of that moment began before, or soon
// after.
MPI_Comm fail_in_driver(Program &program, MPI_Comm parent, const Case &what)
{
    MPI_Comm comm = copy_of(parent);
    const int size = size_of(comm);
    for (int call = 0; call < 40; ++call) {
        Sums sums(program, comm, what);
        const double start = now();
        const int code = sums.reduce();
        if (code == MPI_SUCCESS) {
            program.check(sums.is_right(), "a wrong sum in call %d", call);
            continue;
        }
        program.check(code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, "class %d", code);
        program.check(now() - start < kMostSeconds, "returned after %.2f s", now() - start);
        std::printf("note rank %d: class %d in call %d\n", program.rank(), code, call);
        MPI_Comm shrunk = recover(program, comm, sums, size - 1, what);
        MPI_Comm_free(&comm);
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
    Sums sums(program, comm, what);
    for (int call = 0; call < 2 && what.how != "first" && what.how != "random"; ++call) {
        program.check(sums.reduce() == MPI_SUCCESS, "call %d failed", call);
        sums.check();
    }
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
    if (what.how == "between") {
        usleep(rank == victim ? 10'000'000 : 600'000);
    } else if (rank == victim && !revoke && !random) {
        usleep(10'000'000);
    }
    int code = MPI_SUCCESS, calls = 0;
    while (code == MPI_SUCCESS && now() < when + 20) {
        code = sums.reduce();
        program.check(code != MPI_SUCCESS || sums.is_right(), "a wrong sum in call %d", calls);
        ++calls;
    }
    const double took = now() - when;
    program.check(code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED, "class %d", code);
    program.check(took < kMostSeconds + (what.how == "between" ? 0.3 : 0), "returned after %.2f s",
                  took);
    std::printf("note rank %d: class %d after %d calls, %.3f s after the failure\n", rank, code,
                calls, took);
    MPI_Comm shrunk = recover(program, comm, sums, revoke ? size : size - 1, what);
    MPI_Comm_free(&comm);
    return shrunk;
}

struct Held {
    long descriptors, kilobytes;
};

Held held()
{
    const std::filesystem::directory_iterator all("/proc/self/fd");
    std::ifstream file("/proc/self/statm");
    long pages = 0, resident = 0;
    file >> pages >> resident;
    return {std::distance(begin(all), end(all)), resident * (sysconf(_SC_PAGESIZE) / 1024)};
}

// Nothing is left behind by failures, from the second on.
MPI_Comm fail_often(Program &program, MPI_Comm comm, const Case &what, int failures)
{
    Held after_two{};
    for (int failure = 1; failure <= failures; ++failure) {
        MPI_Comm rest = fail_once(program, comm, what);
        MPI_Comm_free(&comm);
        comm = rest;
        after_two = failure == 2 ? held() : after_two;
    }
    const Held last = held();
    std::printf("note rank %d: after 2 and %d failures (%s): %ld and %ld descriptors, "
                "%ld and %ld KiB\n",
                program.rank(), failures, std::string(what.how).c_str(), after_two.descriptors,
                last.descriptors, after_two.kilobytes, last.kilobytes);
    program.check(last.descriptors <= after_two.descriptors, "%ld descriptors, %ld before",
                  last.descriptors, after_two.descriptors);
    program.check(last.kilobytes < after_two.kilobytes + 2048, "%ld KiB, %ld before",
                  last.kilobytes, after_two.kilobytes);
    return comm;
}

MPI_Comm series(Program &program, MPI_Comm comm, Case what)
{
    what.how = "before";
    comm = fail_often(program, comm, what, size_of(comm) - 2);
    what.how = "revoke";
    return fail_often(program, comm, what, 20);
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
    test::Program program(argc, argv, "failures");
    test::run(program, {.how = argv[1],
                        .way = argv[4],
                        .memory = *find_memory(argv[2]),
                        .count = std::strtoul(argv[3], nullptr, 0),
                        .after = argc > 5 ? std::strtod(argv[5], nullptr) * 1e-3 : 0.2});
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
