// Programs that call wrongly: the table below has the calls of most ranks and that of the last one.
// wrong_calls NAME makes one of them, after calls that are right. Where hetcoll serves the calls
// all ranks return the error, and the next call is right ("all"). Where Open MPI serves one of them
// a rank may be in it already, so the job ends by the error of another ("ends"). Where nothing but
// time tells, ranks wait and say so, after which the program ends the job ("waits"). wrong_calls
// NAME return makes one that Open MPI serves, where errors are returned and the wrong rank comes
// late: then the others wait in it, and say so. "list" prints the names, "right" makes calls that
// only look wrong.
#include "include/hetcoll_types.h"
#include "measure/persistent.h"
#include "test/mpi/vector.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr int kLarge = 100'000; // elements, beyond every limit of small calls
constexpr std::size_t kMostBytes = 2u << 20;

// The buffers of a rank's calls. Zero bytes are a valid input of all of them.
struct Place {
    MPI_Comm comm, other_comm;
    void *in, *out;
    int ranks, *counts, *offsets;
};

using Calls = int (*)(const Place &);

int sum(const Place &at, int count, MPI_Datatype type = MPI_INT, MPI_Op op = MPI_SUM)
{
    return MPI_Allreduce(at.in, at.out, count, type, op, at.comm);
}
int start_sum(const Place &at, int count)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(at.in, at.out, count, MPI_INT, MPI_SUM, at.comm, &request);
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
}
int start_prepared(const Place &at, int count)
{
    MPI_Request request = MPI_REQUEST_NULL;
    const int made = HETCOLL_ALLREDUCE_INIT(at.in, at.out, count, MPI_INT, MPI_SUM, at.comm,
                                            MPI_INFO_NULL, &request);
    if (made != MPI_SUCCESS) {
        return made;
    }
    MPI_Start(&request);
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return code;
}
int bcast(const Place &at, int count, int root = 0)
{
    return MPI_Bcast(at.in, count, MPI_INT, root, at.comm);
}
int reduce(const Place &at, int count, int root = 0, MPI_Op op = MPI_SUM)
{
    return MPI_Reduce(at.in, at.out, count, MPI_INT, op, root, at.comm);
}
// One rank's count alone is another one.
int reduce_scatter(const Place &at, int count, int odd, int more)
{
    for (int rank = 0; rank < at.ranks; ++rank) {
        at.counts[rank] = count + (rank == odd ? more : 0);
    }
    return MPI_Reduce_scatter(at.in, at.out, at.counts, MPI_INT, MPI_SUM, at.comm);
}
int allgatherv(const Place &at, int odd, int more)
{
    int rank = 0, end = 0;
    MPI_Comm_rank(at.comm, &rank);
    for (int peer = 0; peer < at.ranks; ++peer) {
        at.counts[peer] = 2 + (peer == odd ? more : 0);
        at.offsets[peer] = end;
        end += at.counts[peer];
    }
    return MPI_Allgatherv(at.in, at.counts[rank], MPI_INT, at.out, at.counts, at.offsets, MPI_INT,
                          at.comm);
}
int sum_and_barrier(const Place &at, int count)
{
    sum(at, count);
    return MPI_Barrier(at.comm);
}
int barrier_and_sum(const Place &at)
{
    MPI_Barrier(at.comm);
    return sum(at, 2);
}

enum class End { kAll, kEnds, kWaits };

struct WrongCall {
    const char *name;
    Memory memory;
    End end;
    int error; // class, if all ranks return it
    Calls right, wrong;
};

const std::vector<WrongCall> &wrong_calls()
{
    using P = const Place &;
    constexpr Memory kHost = Memory::kHost, kDevice = Memory::kDevice;
    static const std::vector<WrongCall> all = {
        // hetcoll serves both.
        {"allreduce_count", kHost, End::kAll, MPI_ERR_COUNT, [](P at) { return sum(at, 2); },
         [](P at) { return sum(at, 1); }},
        {"allreduce_small_large", kHost, End::kAll, MPI_ERR_COUNT, [](P at) { return sum(at, 2); },
         [](P at) { return sum(at, kLarge); }},
        {"allreduce_type", kHost, End::kAll, MPI_ERR_TYPE, [](P at) { return sum(at, 2); },
         [](P at) { return sum(at, 2, MPI_FLOAT); }},
        {"allreduce_op", kDevice, End::kAll, MPI_ERR_OP, [](P at) { return sum(at, kLarge); },
         [](P at) { return sum(at, kLarge, MPI_INT, MPI_MAX); }},
        {"iallreduce_count", kHost, End::kAll, MPI_ERR_COUNT, [](P at) { return start_sum(at, 2); },
         [](P at) { return start_sum(at, 3); }},
        {"persistent_count", kDevice, End::kAll, MPI_ERR_COUNT,
         [](P at) { return start_prepared(at, 2); }, [](P at) { return start_prepared(at, 3); }},
        {"persistent_allreduce", kHost, End::kAll, MPI_ERR_OTHER,
         [](P at) { return start_prepared(at, 2); }, [](P at) { return sum(at, 2); }},
        {"large_bcast_allreduce", kDevice, End::kAll, MPI_ERR_OTHER,
         [](P at) { return sum(at, kLarge); }, [](P at) { return bcast(at, kLarge); }},
        {"large_bcast_root", kDevice, End::kAll, MPI_ERR_ROOT,
         [](P at) { return bcast(at, kLarge); }, [](P at) { return bcast(at, kLarge, 1); }},
        {"large_reduce_root", kHost, End::kAll, MPI_ERR_ROOT,
         [](P at) { return reduce(at, kLarge); }, [](P at) { return reduce(at, kLarge, 1); }},
        {"large_reduce_op", kDevice, End::kAll, MPI_ERR_OP, [](P at) { return reduce(at, kLarge); },
         [](P at) { return reduce(at, kLarge, 0, MPI_MAX); }},
        {"large_reduce_scatter_count", kDevice, End::kAll, MPI_ERR_COUNT,
         [](P at) { return reduce_scatter(at, kLarge, -1, 0); },
         [](P at) { return reduce_scatter(at, kLarge + 1, -1, 0); }},

        // Open MPI serves one of them, or both.
        {"allreduce_nothing", kHost, End::kEnds, 0, [](P at) { return sum_and_barrier(at, 2); },
         [](P at) { return sum_and_barrier(at, 0); }},
        {"bcast_allreduce", kHost, End::kEnds, 0, [](P at) { return sum(at, 2); },
         [](P at) { return bcast(at, 2); }},
        {"bcast_allreduce_device", kDevice, End::kEnds, 0, [](P at) { return bcast(at, 2); },
         [](P at) { return sum(at, 2); }},
        {"barrier_allreduce", kHost, End::kEnds, 0, [](P at) { return sum(at, 2); },
         [](P at) { return MPI_Barrier(at.comm); }},
        {"barrier_before", kHost, End::kEnds, 0, [](P at) { return sum_and_barrier(at, 2); },
         [](P at) { return barrier_and_sum(at); }},
        {"barrier_iallreduce", kHost, End::kEnds, 0, [](P at) { return start_sum(at, 2); },
         [](P at) { return MPI_Barrier(at.comm); }},
        {"barrier_bcast", kHost, End::kEnds, 0, [](P at) { return MPI_Barrier(at.comm); },
         [](P at) { return bcast(at, 2); }},
        {"bcast_count", kHost, End::kEnds, 0, [](P at) { return bcast(at, 2); },
         [](P at) { return bcast(at, 3); }},
        {"bcast_small_large", kHost, End::kEnds, 0, [](P at) { return bcast(at, 2); },
         [](P at) { return bcast(at, kLarge); }},
        {"bcast_root", kDevice, End::kEnds, 0, [](P at) { return bcast(at, 2); },
         [](P at) { return bcast(at, 2, 1); }},
        {"reduce_root", kHost, End::kEnds, 0, [](P at) { return reduce(at, 2); },
         [](P at) { return reduce(at, 2, 1); }},
        {"reduce_op", kHost, End::kEnds, 0, [](P at) { return reduce(at, 2); },
         [](P at) { return reduce(at, 2, 0, MPI_MAX); }},
        {"scan_exscan", kHost, End::kEnds, 0,
         [](P at) { return MPI_Scan(at.in, at.out, 2, MPI_INT, MPI_SUM, at.comm); },
         [](P at) { return MPI_Exscan(at.in, at.out, 2, MPI_INT, MPI_SUM, at.comm); }},
        {"reduce_scatter_counts", kHost, End::kEnds, 0,
         [](P at) { return reduce_scatter(at, 2, 0, 1); },
         [](P at) { return reduce_scatter(at, 2, 1, 1); }},
        {"allgatherv_counts", kHost, End::kEnds, 0, [](P at) { return allgatherv(at, 0, 1); },
         [](P at) { return allgatherv(at, 0, 2); }},

        // A rank that is elsewhere for all that the others know.
        {"communicator", kHost, End::kWaits, 0, [](P at) { return sum(at, 2); },
         [](P at) { return MPI_Allreduce(at.in, at.out, 2, MPI_INT, MPI_SUM, at.other_comm); }},
        {"missing", kHost, End::kWaits, 0, [](P at) { return sum(at, 2); },
         [](P) { return pause(); }},
    };
    return all;
}

void check_next(Program &program, MPI_Comm comm, Memory memory, std::size_t count)
{
    check_allreduce(
        program, comm,
        {{ElementKind::kInt32, ReduceOp::kSum, Values::kExact, 3}, count, memory, memory});
}

// Waits until the job has printed `count` lines with these words.
void wait_until_said(const char *words, int lines)
{
    for (int said = 0; said < lines; usleep(50'000)) {
        std::ifstream output(std::getenv("HETCOLL_TEST_OUTPUT"));
        said = 0;
        for (std::string line; std::getline(output, line);) {
            said += line.find(words) != std::string::npos ? 1 : 0;
        }
    }
}

// Ends this rank, and by that the job, when it has printed a line of each rank that waits.
void end_when_said(int lines)
{
    wait_until_said(" waits for ", lines);
    _exit(3);
}

// The others are in Open MPI's part of the call and wait for this rank, which hetcoll keeps out.
void call_wrongly_where_others_wait(Program &program, const WrongCall &call, const Place &at)
{
    wait_until_said(" waits for ", 1);
    program.check(call.wrong(at) != MPI_SUCCESS, "%s: no error", call.name);
    wait_until_said(" in its place; ", 1);
    _exit(3);
}

void make(Program &program, const WrongCall &call, bool returns)
{
    MPI_Comm comms[2];
    for (MPI_Comm &comm : comms) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        check_next(program, comm, Memory::kHost, 3);
    }
    check_next(program, comms[0], call.memory, 3);
    const bool wrong = program.rank() == program.ranks() - 1;
    {
        const Vector<char> in = zeros(program, kMostBytes, call.memory),
                           out = zeros(program, kMostBytes, call.memory);
        std::vector<int> counts(static_cast<std::size_t>(program.ranks())), offsets = counts;
        const Place at{comms[0],        comms[1],      in.data(),     out.data(),
                       program.ranks(), counts.data(), offsets.data()};
        if (call.end == End::kAll || returns) {
            for (const MPI_Comm comm : {comms[0], MPI_COMM_WORLD}) { // that of requests in 4.1
                MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            }
        }
        if (returns && wrong) {
            call_wrongly_where_others_wait(program, call, at);
        }
        std::thread ends;
        if (call.end == End::kWaits && program.rank() == 0) {
            ends = std::thread(end_when_said, std::string_view(call.name) == "missing" ? 1 : 2);
        }
        const int code = wrong ? call.wrong(at) : call.right(at);
        int error = code;
        MPI_Error_class(code, &error);
        program.check(error == call.error, "%s: error class %d on rank %d, not %d", call.name,
                      error, program.rank(), call.error);
        if (ends.joinable()) {
            ends.join();
        }
    }
    check_next(program, comms[0], call.memory, 3);
    for (MPI_Comm &comm : comms) {
        MPI_Comm_free(&comm);
    }
}

// Correct programs that look wrong: a root that runs ahead, nonblocking calls among others,
// places and types of a rank's own.
void call_rightly(Program &program)
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const int rank = program.rank(), ranks = program.ranks();
    const auto size = static_cast<std::size_t>(ranks);
    std::vector<int> in(size, 1), out(size), counts(size, 1), places(size);
    for (int peer = 0; peer < ranks; ++peer) {
        places[static_cast<std::size_t>(peer)] = peer;
    }
    for (int turn = 0; turn < 40; ++turn) {
        const int root = turn % ranks;
        int mine = 1, sum = 0, word = rank == root ? turn : -1;
        for (int ahead = 0; ahead < 40; ++ahead) {
            MPI_Bcast(&word, 1, MPI_INT, root, comm);
        }
        program.check(word == turn, "broadcast %d, not %d", word, turn);
        MPI_Request request;
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
        MPI_Barrier(comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        program.check(sum == ranks, "sum %d of %d ranks", sum, ranks);
        MPI_Gather(rank == root ? MPI_IN_PLACE : in.data(), 1, MPI_INT, out.data(), 1, MPI_INT,
                   root, comm);
        MPI_Scatter(in.data(), 4, MPI_BYTE, out.data(), 1, MPI_INT, root, comm);
        MPI_Gatherv(in.data(), 1, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT, root,
                    comm);
        MPI_Alltoall(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, comm);
        MPI_Allgatherv(in.data(), 1, MPI_INT, out.data(), counts.data(), places.data(), MPI_INT,
                       comm);
        MPI_Scan(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
        program.check(sum == rank + 1, "scan %d on rank %d", sum, rank);
        MPI_Reduce(rank == root ? MPI_IN_PLACE : &mine, rank == root ? &mine : nullptr, 1, MPI_INT,
                   MPI_SUM, root, comm);
        program.check(mine == (rank == root ? ranks : 1), "reduce %d on rank %d", mine, rank);
        check_next(program, comm, Memory::kHost, 3);
    }
    MPI_Comm_free(&comm);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string_view name = argc > 1 ? argv[1] : "";
    if (name == "list") {
        for (const WrongCall &call : wrong_calls()) {
            std::printf("%s\n", call.name);
        }
        return 0;
    }
    Program program(argc, argv, "wrong_calls");
    if (name == "right") {
        call_rightly(program);
        return program.finish();
    }
    for (const WrongCall &call : wrong_calls()) {
        if (name == call.name) {
            make(program, call, argc > 2);
            return program.finish();
        }
    }
    program.check(false, "there is no such wrong call");
    return program.finish();
}
