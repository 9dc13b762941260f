// Sizes at the ends of the range: nothing (R7), one element, and more than 2^31 bytes (R10). The
// argument "large" runs the last, which needs 4 GiB of memory per rank.
#include "test/mpi/check.h"

#include <cstring>

int main(int argc, char **argv)
{
    using namespace hetcoll;
    const bool large = argc > 1 && std::strcmp(argv[1], "large") == 0;
    test::Program program(argc, argv, large ? "limits large" : "limits");
    if (large) {
        constexpr std::size_t kCount = (std::size_t{1} << 29) + 3; // 2^31 bytes and 12
        test::check_allreduce(program, MPI_COMM_WORLD,
                              {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1},
                               kCount,
                               Memory::kDevice,
                               Memory::kDevice,
                               true});
        return program.finish();
    }
    for (const Memory memory : {Memory::kHost, Memory::kDevice, Memory::kManaged}) {
        for (const std::size_t count : {0, 1}) {
            for (const bool in_place : {false, true}) {
                for (const MPI_Comm comm : {MPI_COMM_WORLD, MPI_COMM_SELF}) {
                    test::check_allreduce(program, comm,
                                          {{ElementKind::kInt8, ReduceOp::kSum, Values::kExact, 2},
                                           count,
                                           memory,
                                           memory,
                                           in_place});
                }
            }
        }
    }
    return program.finish();
}
