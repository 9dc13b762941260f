// coll_hetcoll_algorithm and coll_hetcoll_chunk_bytes set through MPI_T while the program runs:
// each communicator keeps what was set at its first MPI_Allreduce. With "differ" the ranks set
// different values, with "unknown" one sets a value that does not exist: the results are right all
// the same. With "keys" and "bad_keys" the same by a communicator's info keys.
#include "measure/parameters.h"
#include "test/mpi/check.h"

#include <array>
#include <string>
#include <utility>

namespace hetcoll::test {
namespace {

constexpr std::array kAlgorithms = {"recursive_doubling", "rabenseifner", "ring"};
constexpr std::size_t kCount = 50'001; // above the small limit

const Call kCall{{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, kCount};

ServingRoute reduce(Program &program, MPI_Comm comm)
{
    Buffers buffers(program, comm, kCall);
    buffers.fill();
    buffers.reduce(); // finds out who reaches whose memory
    buffers.fill();
    const CounterValues before = program.counters().read();
    buffers.reduce();
    const ServingRoute route = name_route(program.counters(), program.counters().read() - before);
    buffers.check();
    return route;
}

void every_communicator_keeps_its_own(Program &program, const Parameters &parameters)
{
    std::array<MPI_Comm, kAlgorithms.size()> comms{};
    for (std::size_t i = 0; i < comms.size(); ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        program.require(parameters.set(kAlgorithms[i], 4096));
        int one = 1;
        MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, comms[i]);
    }
    program.require(parameters.set("auto", 0));
    for (std::size_t i = comms.size(); i-- > 0;) {
        const ServingRoute route = reduce(program, comms[i]);
        program.check(program.ranks() == 1 || route.algorithm == kAlgorithms[i],
                      "set to %s, served by %s", kAlgorithms[i], route.algorithm.c_str());
        MPI_Comm_free(&comms[i]);
    }
}

void on_one_communicator(Program &program, const Parameters &parameters, const char *algorithm,
                         std::size_t chunk_bytes)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    program.require(parameters.set(algorithm, chunk_bytes));
    reduce(program, comm);
    MPI_Comm_free(&comm);
}

MPI_Comm dup_with(const char *key, const std::string &value)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value.c_str());
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

std::string told(MPI_Comm comm, const char *key)
{
    MPI_Info info = MPI_INFO_NULL;
    std::array<char, 64> value{};
    int given = 0;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, key, static_cast<int>(value.size()) - 1, value.data(), &given);
    MPI_Info_free(&info);
    return given != 0 ? value.data() : "";
}

// Each communicator has its own key; what comes after its first call is not taken.
void by_keys(Program &program)
{
    for (const char *const algorithm : kAlgorithms) {
        MPI_Comm comm = dup_with("hetcoll_algorithm", algorithm);
        const ServingRoute route = reduce(program, comm);
        program.check(program.ranks() == 1 || route.algorithm == algorithm,
                      "the key says %s, served by %s", algorithm, route.algorithm.c_str());
        MPI_Comm_free(&comm);
    }
    MPI_Comm comm = dup_with("hetcoll_reproducible", "false");
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "hetcoll_algorithm", "ring");
    MPI_Comm_set_info(comm, info); // before its first call
    const ServingRoute route = reduce(program, comm);
    program.check(program.ranks() == 1 || route.algorithm == "ring", "set to ring, served by %s",
                  route.algorithm.c_str());
    MPI_Info_free(&info);
    program.check(told(comm, "hetcoll_algorithm") == "ring", "MPI_Comm_get_info tells '%s'",
                  told(comm, "hetcoll_algorithm").c_str());
    program.check(told(MPI_COMM_WORLD, "hetcoll_algorithm") == "default", "the world tells '%s'",
                  told(MPI_COMM_WORLD, "hetcoll_algorithm").c_str());
    MPI_Comm_free(&comm);
}

void by_bad_keys(Program &program, bool odd)
{
    for (const auto &[key, value] : {std::pair{"hetcoll_algorithm", "rings"},
                                     {"hetcoll_reproducible", "1"},
                                     {"hetcoll_tag", "a\"b"},
                                     {"hetcoll_tag", "a name that is far longer than that"}}) {
        MPI_Comm comm = dup_with(key, value);
        reduce(program, comm);
        MPI_Comm_free(&comm);
    }
    MPI_Comm comm = dup_with("hetcoll_algorithm", odd ? "ring" : "rabenseifner");
    reduce(program, comm);
    MPI_Comm_free(&comm);
}

void run(Program &program, const std::string &what)
{
    if (what == "keys") {
        by_keys(program);
        return;
    }
    if (what == "bad_keys") {
        by_bad_keys(program, program.rank() % 2 == 1);
        return;
    }

    const Parameters parameters;
    const bool odd = program.rank() % 2 == 1;
    if (what.empty()) {
        every_communicator_keeps_its_own(program, parameters);
    } else if (what == "differ") {
        on_one_communicator(program, parameters, odd ? "ring" : "rabenseifner", 0);
        on_one_communicator(program, parameters, "ring", odd ? 4096 : 8192);
        on_one_communicator(program, parameters, odd ? "auto" : "recursive_doubling", 0);
    } else {
        on_one_communicator(program, parameters, "nonsense", 0);
        on_one_communicator(program, parameters, "ring", 5);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "settings");
    run(program, argc > 1 ? argv[1] : "");
    return program.finish();
}
