// Floating-point control registers that differ between ranks: a library built with -ffast-math
// flushes subnormal numbers, a program rounds another way or asks for traps. All ranks get the same
// bits all the same, the sums are those of the default register, in the order of the ranks, and
// each rank's register stays as it was.
//   float_control MODE RANK   a name of kFloatModeNames; the rank that has it, or all
#include "cuda_kernels/reduction.h"
#include "measure/buffer.h"
#include "test/mpi/check.h"
#include "test/unit/float_modes.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

// Whether the calls are summed in the order of the ranks: coll_hetcoll_reproducible, or two ranks.
bool in_order(const Program &program)
{
    return program.ranks() == 2 || std::getenv("OMPI_MCA_coll_hetcoll_reproducible") != nullptr;
}

// Every second number subnormal, the others with many digits; some sums are too large, or of
// infinities.
std::vector<float> input(std::size_t count, int rank)
{
    std::vector<std::uint32_t> bits(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 77;
        x ^= x >> 29;
        x *= 0x94d049bb133111ebu;
        const auto low = static_cast<std::uint32_t>(x >> 32) & 0x7fffff;
        bits[i] = i % 2 == 1 ? low : 0x3f800000u | low;
        bits[i] = i % 97 == 50 ? 0x7f700000u : i % 97 == 52 ? 0x7f800000u : bits[i];
        if (i % 97 == 52 && rank % 2 == 1) {
            bits[i] |= 0x80000000u;
        }
    }
    std::vector<float> numbers(count);
    std::memcpy(numbers.data(), bits.data(), count * sizeof(float));
    return numbers;
}

std::vector<float> fold(std::size_t count, int ranks)
{
    std::vector<float> sum = input(count, 0);
    for (int rank = 1; rank < ranks; ++rank) {
        host_reduce(ReduceOp::kSum, ElementKind::kFloat32)(sum.data(), sum.data(),
                                                           input(count, rank).data(), count);
    }
    return sum;
}

Memory place(int where, int rank)
{
    return where == 1 || (where == 2 && rank % 2 == 1) ? Memory::kDevice : Memory::kHost;
}

void check_sum(Program &program, std::optional<FloatMode> mode, std::size_t count, int where)
{
    constexpr const char *kWhere[] = {"host", "device", "mixed"};
    const Memory memory = place(where, program.rank());
    const std::size_t bytes = count * sizeof(float);
    auto buffer =
        Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(), memory, bytes);
    program.require(buffer.ok() ? Status() : buffer.take_status());
    program.require(buffer->write(0, input(count, program.rank()).data(), bytes));
    const std::vector<float> wanted = fold(count, program.ranks());
    bool kept = true;
    {
        std::optional<UnderFloatMode> under;
        if (mode) {
            under.emplace(*mode);
        }
        MPI_Allreduce(MPI_IN_PLACE, buffer->data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
        kept = !under || under->is_as_set();
    }
    std::vector<float> got(count), first;
    program.require(buffer->read(0, got.data(), bytes));
    first = got;
    MPI_Bcast(first.data(), static_cast<int>(bytes), MPI_BYTE, 0, MPI_COMM_WORLD);
    program.check(std::memcmp(got.data(), first.data(), bytes) == 0,
                  "%zu floats in %s memory: other bits than rank 0's", count, kWhere[where]);
    program.check(!in_order(program) || std::memcmp(got.data(), wanted.data(), bytes) == 0,
                  "%zu floats in %s memory: not the sums of the default register", count,
                  kWhere[where]);
    program.check(kept, "%zu floats in %s memory: the register has changed", count, kWhere[where]);
}

std::optional<FloatMode> mode_of(const char *name)
{
    for (std::size_t i = 0; i < std::size(kFloatModes); ++i) {
        if (std::string_view(name) == kFloatModeNames[i]) {
            return kFloatModes[i];
        }
    }
    return std::nullopt;
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "float_control");
    auto mode = mode_of(argc > 1 ? argv[1] : "");
    program.check(mode.has_value(), "usage: float_control MODE RANK|all");
    const std::string_view who = argc > 2 ? argv[2] : "all";
    if (who != "all" && std::atoi(argv[2]) != program.rank()) {
        mode.reset();
    }
    const bool ours = std::getenv("OMPI_MCA_coll_hetcoll_reproducible") != nullptr;
    for (const std::size_t count : {4u, 1000u, 2048u, 6000u, 100'000u}) {
        for (const int where : {0, 1, 2}) {
            if (where != 0 || ours || count <= 2048) { // else Open MPI sums host memory
                check_sum(program, mode, count, where);
            }
        }
    }
    program.close_gpu();
    return program.finish();
}
