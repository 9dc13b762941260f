// R3: host memory on some ranks and device memory on others in one call: where a buffer lies is a
// local fact, and Horovod's join mixes them. Every pattern of the first ranks, at every class of
// size.
#include "test/mpi/check.h"

#include <algorithm>

namespace hetcoll::test {
namespace {

void one_pattern(Program &program, unsigned pattern, std::uint32_t seed)
{
    const bool device = (pattern >> program.rank() % 4 & 1) != 0;
    const Memory here = device ? Memory::kDevice : Memory::kHost;
    const Memory other = device ? Memory::kHost : Memory::kDevice;
    for (const std::size_t count : {2, 100, 1'000, 2'500, 16'384, 100'001, 1'048'576}) {
        const bool large = count > 50'000;
        if (count > 1'000'000 && pattern % 5 != 1) {
            continue; // takes long, and a few patterns say it
        }
        check_allreduce(program, MPI_COMM_WORLD,
                        {{ElementKind::kFloat32, ReduceOp::kSum, Values::kRandom, seed},
                         count,
                         here,
                         here,
                         true});
        if (!large) { // all kinds of op meet in one call, so bits must agree between CPU and GPU
            check_allreduce(
                program, MPI_COMM_WORLD,
                {{ElementKind::kInt16, ReduceOp::kSum, Values::kExact, seed}, count, here, here});
            check_allreduce(program, MPI_COMM_WORLD,
                            {{ElementKind::kFloat64, ReduceOp::kMin, Values::kRandom, seed},
                             count,
                             here,
                             other});
        }
    }
}

// The ranks' places change from call to call on the same communicator.
void changing_patterns(Program &program)
{
    for (unsigned i = 0; i < 40; ++i) {
        const unsigned pattern = i * 7 + 3;
        const bool device = (pattern >> program.rank() % 5 & 1) != 0;
        const Memory here = device ? Memory::kDevice : Memory::kHost;
        check_allreduce(program, MPI_COMM_WORLD,
                        {{ElementKind::kInt64, ReduceOp::kSum, Values::kRandom, i},
                         std::size_t{1} << i % 17,
                         here,
                         here});
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "mixed_memory");
    const unsigned patterns = 1U << std::min(program.ranks(), 4);
    // With many ranks a pattern repeats every four of them; a few patterns are enough.
    const unsigned step = program.ranks() > 4 ? 3 : 1;
    for (unsigned pattern = 0; pattern < patterns; pattern += step) {
        one_pattern(program, pattern, pattern + 1);
    }
    changing_patterns(program);
    return program.finish();
}
