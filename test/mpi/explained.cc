// explained TOPOLOGY [NODES]: what serves a call is what hetcoll_info --explain says of it. With
// --mca coll_hetcoll_topology_file TOPOLOGY, and without a table: prices choose on both sides.
#include "test/mpi/check.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hetcoll::test {
namespace {

using Name = std::array<char, 64>;

// On rank 0: the word behind "served by", without a comma.
Name explain(Program &program, const std::string &call)
{
    Name served{};
    const std::string command =
        std::string(std::getenv("HETCOLL_BUILDDIR")) + "/hetcoll_info --explain " + call;
    FILE *output = popen(command.c_str(), "r");
    std::array<char, 512> line{};
    while (output != nullptr && std::fgets(line.data(), line.size(), output) != nullptr) {
        std::sscanf(line.data(), "served by %63[a-z0-9_]", served.data());
    }
    program.check(output != nullptr && pclose(output) == 0 && served[0] != '\0',
                  "%s says nothing of who serves", command.c_str());
    return served;
}

int run(int argc, char **argv)
{
    Program program(argc, argv, "explained");
    const std::string topology = argc > 1 ? argv[1] : "", nodes = argc > 2 ? argv[2] : "1";
    for (const std::size_t bytes : {12'000u, 49'152u, 200'000u, 1'048'576u, 3'000'000u}) {
        Name expected{};
        if (program.rank() == 0) {
            expected = explain(program, "--bytes " + std::to_string(bytes) + " --ranks " +
                                            std::to_string(program.ranks()) + " --nodes " + nodes +
                                            " --topology " + topology);
        }
        MPI_Bcast(expected.data(), static_cast<int>(expected.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
        const Call call{{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, bytes / 4};
        const CounterValues before = program.counters().read();
        {
            Buffers buffers(program, MPI_COMM_WORLD, call);
            buffers.fill();
            program.check(buffers.reduce() == MPI_SUCCESS, "%zu bytes: no success", bytes);
            buffers.check();
        }
        const ServingRoute route =
            name_route(program.counters(), program.counters().read() - before);
        program.check(route.algorithm == expected.data(), "%zu bytes: %s, but explained as %s",
                      bytes, route.algorithm.c_str(), expected.data());
    }
    return program.finish();
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv) { return hetcoll::test::run(argc, argv); }
