// MPI_Allreduce on device buffers: every operation on every element kind, sizes around every limit,
// every place of the two buffers, and all ranks ending with the same bits.
#include "test/mpi/check.h"

#include <dlfcn.h>

#include <array>

namespace hetcoll::test {
namespace {

// R5, R6 (random integers wrap): below and above the small limit, and not a multiple of anything.
void every_op_on_every_kind(Program &program)
{
    std::uint32_t seed = 1;
    const CounterValues before = program.counters().read();
    for (int k = 0; k < kElementKindCount; ++k) {
        for (int o = 0; o < kMpiOpCount; ++o) {
            const auto kind = static_cast<ElementKind>(k);
            const auto op = static_cast<ReduceOp>(o);
            if (!is_defined(op, kind) || program.names().datatype(kind) == MPI_DATATYPE_NULL) {
                continue;
            }
            for (const std::size_t count : {std::size_t{13}, std::size_t{40'001}}) {
                const auto values = seed % 2 == 0 ? Values::kExact : Values::kRandom;
                check_allreduce(program, MPI_COMM_WORLD,
                                {{kind, op, values, seed},
                                 count,
                                 Memory::kDevice,
                                 Memory::kDevice,
                                 seed % 3 == 0});
                ++seed;
            }
        }
    }
    const CounterValues used = program.counters().read() - before;
    program.check(used[HETCOLL_CALLS_STAGED] == 0, "%llu calls were staged, not accelerated",
                  static_cast<unsigned long long>(used[HETCOLL_CALLS_STAGED]));
}

void sizes_around_every_limit(Program &program)
{
    const auto ranks = static_cast<std::size_t>(program.ranks());
    const std::array<std::size_t, 17> counts = {
        0,     1,     ranks - 1, ranks,  ranks + 1, 2 * ranks + 1, 255,     256,    1'023,
        1'025, 4'096, 16'383,    16'385, 65'537,    131'072,       262'145, 999'983};
    std::uint32_t seed = 100;
    for (const std::size_t count : counts) {
        for (const bool in_place : {false, true}) {
            check_allreduce(program, MPI_COMM_WORLD,
                            {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, ++seed},
                             count,
                             Memory::kDevice,
                             Memory::kDevice,
                             in_place});
        }
    }
}

// R4, R7: only the alignment of an element is guaranteed, and the two buffers may differ, on each
// rank.
void misaligned_buffers(Program &program)
{
    std::uint32_t seed = 200;
    for (const std::size_t count : {std::size_t{7}, std::size_t{5'003}, std::size_t{100'003}}) {
        for (const std::size_t shift : {0, 1, 2, 3}) {
            const std::size_t here = (shift + static_cast<std::size_t>(program.rank())) % 4;
            check_allreduce(program, MPI_COMM_WORLD,
                            {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, ++seed},
                             count,
                             Memory::kDevice,
                             Memory::kDevice,
                             false,
                             4 * here,
                             4 * shift});
            check_allreduce(program, MPI_COMM_WORLD,
                            {{ElementKind::kInt8, ReduceOp::kMax, Values::kRandom, ++seed},
                             count,
                             Memory::kDevice,
                             Memory::kDevice,
                             false,
                             here,
                             shift});
        }
    }
}

// R7: the send buffer stays as it is, guards and all, in whatever memory.
void every_pair_of_places(Program &program)
{
    std::uint32_t seed = 300;
    const std::array<Memory, 4> kinds = {Memory::kHost, Memory::kPinned, Memory::kDevice,
                                         Memory::kManaged};
    for (const Memory send : kinds) {
        for (const Memory recv : kinds) {
            for (const std::size_t count :
                 {std::size_t{3}, std::size_t{2'000}, std::size_t{150'001}}) {
                check_allreduce(program, MPI_COMM_WORLD,
                                {{ElementKind::kFloat64, ReduceOp::kSum, Values::kExact, ++seed},
                                 count,
                                 send,
                                 recv});
            }
        }
    }
    for (const Memory memory : kinds) {
        check_allreduce(program, MPI_COMM_WORLD,
                        {{ElementKind::kInt32, ReduceOp::kBxor, Values::kRandom, ++seed},
                         77'777,
                         memory,
                         memory,
                         true});
    }
}

// Training does this: the same buffers again and again, with other contents.
void repeated_calls(Program &program)
{
    const Call call{{ElementKind::kFloat32, ReduceOp::kSum, Values::kRandom, 7}, 30'000};
    Buffers buffers(program, MPI_COMM_WORLD, call);
    for (int i = 0; i < 20; ++i) {
        buffers.fill();
        program.check(buffers.reduce() == MPI_SUCCESS, "call %d failed", i);
        buffers.check();
    }
}

void other_communicators(Program &program)
{
    MPI_Comm half = MPI_COMM_NULL, reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, program.rank() % 2, program.rank(), &half);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -program.rank(), &reversed);
    for (const MPI_Comm comm : {half, reversed, MPI_COMM_SELF}) {
        for (const std::size_t count : {std::size_t{5}, std::size_t{60'001}}) {
            check_allreduce(program, comm,
                            {{ElementKind::kFloat32, ReduceOp::kProd, Values::kExact, 11}, count});
        }
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&reversed);
}

// MPI_Allreduce_c, where the MPI has it.
void large_counts(Program &program)
{
    using LargeCounts = int (*)(const void *, void *, MPI_Count, MPI_Datatype, MPI_Op, MPI_Comm);
    const auto allreduce_c = reinterpret_cast<LargeCounts>(dlsym(RTLD_DEFAULT, "MPI_Allreduce_c"));
    if (allreduce_c == nullptr) {
        return;
    }
    for (const std::size_t count : {std::size_t{5}, std::size_t{60'001}}) {
        const Call call{{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 12}, count};
        Buffers buffers(program, MPI_COMM_WORLD, call);
        buffers.fill();
        const int code = allreduce_c(buffers.send(), buffers.recv(), static_cast<MPI_Count>(count),
                                     MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        program.check(code == MPI_SUCCESS, "MPI_Allreduce_c failed");
        buffers.check();
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "device_allreduce");
    every_op_on_every_kind(program);
    sizes_around_every_limit(program);
    misaligned_buffers(program);
    every_pair_of_places(program);
    repeated_calls(program);
    other_communicators(program);
    large_counts(program);
    return program.finish();
}
