// Sums by aggregators (with_aggregators.sh starts them): right results wherever the memory lies,
// served by aggregators and by nothing else; and by another algorithm if there is no aggregator, or
// no longer one. With "killed" the test kills one in the middle of a call. With "none" no
// aggregator serves a call; with "differ" neither, because the ranks have different settings.
// With "once" there is one call, whose bytes the servers have counted.
#include "test/mpi/check.h"

#include "measure/persistent.h"

#include <sys/types.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

Pattern sum(ElementKind kind = ElementKind::kFloat32)
{
    return {.kind = kind, .op = ReduceOp::kSum};
}

class InNetwork {
public:
    InNetwork(Program &program, bool serves) : program_(program), serves_(serves) {}

    // One call, and who has served it.
    void call(MPI_Comm comm, const Call &call)
    {
        const std::uint64_t before = calls();
        check_allreduce(program_, comm, call);
        int size = 0;
        MPI_Comm_size(comm, &size);
        const bool by_them = serves_ && size > 1;
        program_.check((calls() != before) == by_them, "%s was%s reduced by aggregators",
                       describe(call).c_str(), by_them ? " not" : "");
    }

    void every_kind(MPI_Comm comm)
    {
        for (const std::size_t count : {std::size_t{4'097}, std::size_t{100'003}}) {
            for (const bool in_place : {false, true}) {
                call(comm, {.pattern = sum(), .count = count, .in_place = in_place});
            }
            call(comm, {.pattern = sum(ElementKind::kFloat64), .count = count});
            call(comm, {.pattern = sum(ElementKind::kInt64), .count = count, .in_place = true});
            call(comm,
                 {.pattern = {.kind = ElementKind::kInt32, .op = ReduceOp::kMax}, .count = count});
            // Every other rank's vector is host memory, and of some input and result differ.
            const bool host = program_.rank() % 2 == 1;
            const Memory memory = host ? Memory::kHost : Memory::kDevice;
            call(comm, {.pattern = sum(), .count = count, .send = memory, .recv = memory});
            call(comm, {.pattern = sum(),
                        .count = count,
                        .send = memory,
                        .recv = memory,
                        .in_place = true});
            call(comm, {.pattern = sum(),
                        .count = count,
                        .send = host ? Memory::kHost : Memory::kDevice,
                        .recv = Memory::kDevice});
        }
        call(comm, {.pattern = sum(), .count = 3'000'001, .in_place = true}); // some parts
    }

private:
    std::uint64_t calls() { return program_.counters().read()[HETCOLL_CALLS_IN_NETWORK]; }

    Program &program_;
    bool serves_;
};

void check_others(Program &program)
{
    InNetwork none(program, false); // small ones
    none.call(MPI_COMM_WORLD, {.pattern = sum(), .count = 100});
}

// Many on two communicators at the same time, in the one order on some ranks and in the other on
// others.
void check_two_communicators(Program &program)
{
    MPI_Comm other = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    constexpr int kCalls = 4;
    const Call call{.pattern = sum(), .count = 200'001};
    std::vector<std::unique_ptr<Buffers>> buffers;
    std::vector<MPI_Request> requests(2 * kCalls);
    for (int i = 0; i < 2 * kCalls; ++i) {
        buffers.push_back(std::make_unique<Buffers>(program, MPI_COMM_WORLD, call));
        buffers.back()->fill();
    }
    for (int i = 0; i < kCalls; ++i) {
        for (int k = 0; k < 2; ++k) {
            const int which = program.rank() % 2 == 0 ? k : 1 - k;
            const auto slot = static_cast<std::size_t>(2 * i + which);
            MPI_Iallreduce(buffers[slot]->send(), buffers[slot]->recv(), 200'001, MPI_FLOAT,
                           MPI_SUM, which == 0 ? MPI_COMM_WORLD : other, &requests[slot]);
        }
    }
    MPI_Waitall(2 * kCalls, requests.data(), MPI_STATUSES_IGNORE);
    for (const auto &each : buffers) {
        each->check();
    }
    buffers.clear();
    MPI_Comm_free(&other);
}

void check_persistent(Program &program)
{
    Buffers buffers(program, MPI_COMM_WORLD, {.pattern = sum(), .count = 70'001});
    MPI_Request request = MPI_REQUEST_NULL;
    HETCOLL_ALLREDUCE_INIT(buffers.send(), buffers.recv(), 70'001, MPI_FLOAT, MPI_SUM,
                           MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 3; ++i) {
        buffers.fill();
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        buffers.check();
    }
    MPI_Request_free(&request);
}

void kill_server()
{
    const char *const server = std::getenv("HETCOLL_TEST_AGGREGATOR");
    if (server != nullptr && std::atoi(server) > 0) {
        kill(static_cast<pid_t>(std::atoi(server)), SIGKILL);
    }
}

// After this many polls of a nonblocking call; none: before it begins.
void check_killed(Program &program, bool in_place, int polls)
{
    const Call call{.pattern = sum(), .count = 4'000'000, .in_place = in_place};
    check_allreduce(program, MPI_COMM_WORLD, call);
    const std::uint64_t before = program.counters().read()[HETCOLL_CALLS_IN_NETWORK];
    program.check(before == 1, "the first call was not reduced by aggregators");
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    if (polls == 0 && program.rank() == 0) {
        kill_server();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallreduce(in_place ? MPI_IN_PLACE : buffers.send(), buffers.recv(), 4'000'000, MPI_FLOAT,
                   MPI_SUM, MPI_COMM_WORLD, &request);
    int done = 0;
    for (int i = 0; i < polls && done == 0; ++i) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
    if (polls > 0 && program.rank() == 0) {
        kill_server();
    }
    const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    program.check(code == MPI_SUCCESS, "the call in which an aggregator was killed failed");
    buffers.check();
    InNetwork(program, false).call(MPI_COMM_WORLD, call); // and what comes after
    const std::uint64_t after = program.counters().read()[HETCOLL_CALLS_IN_NETWORK];
    program.check(after == before, "the aggregator was killed after the call");
}

void run(Program &program, std::string_view what)
{
    if (what == "killed" || what == "killed_in_place" || what == "killed_before") {
        check_killed(program, what == "killed_in_place", what == "killed_before" ? 0 : 40);
        return;
    }
    if (what == "none" || what == "differ") {
        InNetwork none(program, false);
        none.call(MPI_COMM_WORLD, {.pattern = sum(), .count = 100'003});
        none.call(MPI_COMM_WORLD, {.pattern = sum(), .count = 100'003, .in_place = true});
        MPI_Comm other = MPI_COMM_NULL; // which does not wait for what has failed
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        none.call(other, {.pattern = sum(), .count = 100'003});
        MPI_Comm_free(&other);
        return;
    }
    InNetwork network(program, true);
    if (what == "once") {
        network.call(MPI_COMM_WORLD, {.pattern = sum(), .count = 1'000'003});
        return;
    }
    network.every_kind(MPI_COMM_WORLD);
    check_others(program);
    check_persistent(program);
    check_two_communicators(program);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, program.rank() % 2, -program.rank(), &half);
    network.call(half, {.pattern = sum(), .count = 50'001});
    MPI_Comm_free(&half);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const char *const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (argc > 1 && std::string_view(argv[1]) == "differ" && rank != nullptr && *rank == '1') {
        setenv("OMPI_MCA_coll_hetcoll_aggregator_window", "3", 1);
    }
    Program program(argc, argv, "in_network");
    run(program, argc > 1 ? argv[1] : "");
    program.close_gpu();
    return program.finish();
}
