// MPI_Comm_idup, for which Open MPI uses the nonblocking collectives of the communicator: hetcoll
// has no part in it. In Open MPI 4.1 several of an inter-communicator in flight can deadlock,
// with hetcoll and without: a rank begins the broadcast of the first when its own part of the
// reduction before it is over, the local group's first rank when all of it is, and in between
// either may begin the reduction of the second. Both take tags in the order of the calls. idups.sh
// counts how often.
//   idups [COUNT [ROUNDS [among]]]   COUNT in flight, ROUNDS times; default 1 and 3
// COUNT 1 cannot wait so. With "among" they are of a communicator that does other collectives
// meanwhile, which take tags of the same row.
#include "measure/buffer.h"
#include "test/mpi/check.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace hetcoll::test {
namespace {

void check_unused(Program &program, const CounterValues &before)
{
    const CounterValues used = program.counters().read() - before;
    for (int i = HETCOLL_CALLS_PREVIOUS; i <= HETCOLL_CALLS_COLLECTIVE; ++i) {
        const std::uint64_t calls = used[static_cast<hetcoll_counter>(i)];
        program.check(calls == 0, "%llu calls of hetcoll in MPI_Comm_idup, counter %d",
                      static_cast<unsigned long long>(calls), i);
    }
}

// How many ranks a sum of ones on `comm` counts: those of the other group, if there is one.
void check_sum(Program &program, MPI_Comm comm, int ranks)
{
    const int one = 1;
    int sum = -1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    program.check(sum == ranks, "sum %d of %d ranks", sum, ranks);
}

void duplicate(Program &program, MPI_Comm comm, int count, int ranks)
{
    const CounterValues before = program.counters().read();
    std::vector<MPI_Comm> made(static_cast<std::size_t>(count), MPI_COMM_NULL);
    std::vector<MPI_Request> requests(made.size(), MPI_REQUEST_NULL);
    for (std::size_t i = 0; i < made.size(); ++i) {
        MPI_Comm_idup(comm, &made[i], &requests[i]);
    }
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    check_unused(program, before);
    for (MPI_Comm &one : made) {
        check_sum(program, one, ranks);
        MPI_Comm_free(&one);
    }
}

void check_idups(Program &program, int count)
{
    const int all = program.ranks(), low = all / 2;
    const bool is_low = program.rank() < low;
    MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, is_low ? 1 : 0, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_low ? low : 0, 7, &inter);
    duplicate(program, inter, count, is_low ? all - low : low);
    if (count == 1) {
        duplicate(program, half, count, is_low ? low : all - low);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

// Duplicates of a communicator, and its own collectives between the calls that make them.
void check_among(Program &program, int count)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int ranks = program.ranks();
    std::vector<MPI_Comm> made(static_cast<std::size_t>(count), MPI_COMM_NULL);
    std::vector<int> sums(made.size(), -1);
    std::vector<MPI_Request> requests;
    for (std::size_t i = 0; i < made.size(); ++i) {
        static const int one = 1;
        int sum = -1, root = program.rank();
        requests.insert(requests.end(), 2, MPI_REQUEST_NULL);
        MPI_Comm_idup(comm, &made[i], &requests[2 * i]);
        MPI_Iallreduce(&one, &sums[i], 1, MPI_INT, MPI_SUM, comm, &requests[2 * i + 1]);
        MPI_Bcast(&root, 1, MPI_INT, 0, comm);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        program.check(sum == ranks && root == 0, "among idups: sum %d, root %d", sum, root);
    }
    MPI_Waitall(2 * count, requests.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < made.size(); ++i) {
        program.check(sums[i] == ranks, "among idups: sum %d of %d ranks", sums[i], ranks);
        check_sum(program, made[i], ranks);
        MPI_Comm_free(&made[i]);
    }
    MPI_Comm_free(&comm);
}

// A call that looks like those of MPI_Comm_idup, of a program.
void check_lookalike(Program &program, Memory memory)
{
    auto made =
        Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(), memory, sizeof(int));
    if (!made.ok()) {
        program.require(made.status());
    }
    for (const bool largest : {false, true}) {
        const int rank = program.rank();
        program.require(made->write(0, &rank, sizeof rank));
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(MPI_IN_PLACE, made->data(), 1, MPI_INT, largest ? MPI_MAX : MPI_MIN,
                       MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        int result = -1;
        program.require(made->read(0, &result, sizeof result));
        const int expected = largest ? program.ranks() - 1 : 0;
        program.check(result == expected, "%d, not %d, of one int in %s memory", result, expected,
                      memory == Memory::kHost ? "host" : "device");
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    hetcoll::test::Program program(argc, argv, "idups");
    const int count = argc > 1 ? std::atoi(argv[1]) : 1, rounds = argc > 2 ? std::atoi(argv[2]) : 3;
    if (program.ranks() < 2) {
        if (program.rank() == 0) {
            std::puts("skip idups: an inter-communicator needs two ranks");
        }
        return program.finish();
    }
    for (int round = 0; round < rounds; ++round) {
        if (argc > 3) {
            hetcoll::test::check_among(program, count);
        } else {
            hetcoll::test::check_idups(program, count);
        }
    }
    if (count == 1) {
        hetcoll::test::check_lookalike(program, hetcoll::Memory::kHost);
        hetcoll::test::check_lookalike(program, hetcoll::Memory::kDevice);
    }
    return program.finish();
}
