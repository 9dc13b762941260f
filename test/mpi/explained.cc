// explained TOPOLOGY NODES [OPTION...]: what serves a call is what hetcoll_info --explain says of
// it, with more options as they are. With --mca coll_hetcoll_topology_file TOPOLOGY, and without a
// table: prices choose on both sides. --mixed: every second rank reduces host memory, once all know
// each other's GPUs.
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

void reduce(Program &program, const Call &call)
{
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    program.check(buffers.reduce() == MPI_SUCCESS, "%s: no success", describe(call).c_str());
    buffers.check();
}

int run(int argc, char **argv)
{
    Program program(argc, argv, "explained");
    std::string options = " --ranks " + std::to_string(program.ranks());
    const char *names[] = {" --topology ", " --nodes "};
    bool mixed = false;
    for (int i = 1; i < argc; ++i) {
        options += (i <= 2 ? names[i - 1] : " ") + std::string(argv[i]);
        mixed = mixed || std::strcmp(argv[i], "--mixed") == 0;
    }
    const Pattern pattern{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1};
    reduce(program, {pattern, 5000});
    const Memory memory = mixed && program.rank() % 2 == 1 ? Memory::kHost : Memory::kDevice;
    for (const std::size_t bytes : {12'000u, 49'152u, 200'000u, 1'048'576u, 3'000'000u}) {
        Name expected{};
        if (program.rank() == 0) {
            expected = explain(program, "--bytes " + std::to_string(bytes) + options);
        }
        MPI_Bcast(expected.data(), static_cast<int>(expected.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
        const CounterValues before = program.counters().read();
        reduce(program, {pattern, bytes / 4, memory, memory});
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
