// coll_hetcoll_algorithm and coll_hetcoll_chunk_bytes set through MPI_T while the program runs:
// each communicator keeps what was set at its first MPI_Allreduce. With "differ" the ranks set
// different values, with "unknown" one sets a value that does not exist: the results are right all
// the same.
#include "measure/parameters.h"
#include "test/mpi/check.h"

#include <array>
#include <string>

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

void run(Program &program, const std::string &what)
{
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
