// Messages of the program's own between its Allreduces, from and into device memory: a CUDA-aware
// pml opens the GPU and maps memory of peers as well as hetcoll. For an MPI whose messages may
// carry device memory, as pml ucx over a UCX with CUDA; `host` as an argument for all others.
#include "test/mpi/check.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kCounts[] = {1, 17, 2'000, 40'000, 300'000};

unsigned char expected(int from, int round, std::size_t i)
{
    return static_cast<unsigned char>(static_cast<std::size_t>(from * 31 + round * 7) + i % 251);
}

Buffer allocate(Program &program, Memory memory, std::size_t bytes)
{
    Result<Buffer> made = Buffer::allocate(&program.gpu(), memory, bytes);
    if (!made.ok()) {
        program.require(made.status());
    }
    return std::move(*made);
}

// To the next rank and from the previous one, by calls that return when the message is there, or
// that began before an Allreduce and end after it.
void pass_on(Program &program, Memory memory, int round, std::size_t bytes, bool around)
{
    const int next = (program.rank() + 1) % program.ranks();
    const int previous = (program.rank() + program.ranks() - 1) % program.ranks();
    const Buffer out = allocate(program, memory, bytes), in = allocate(program, memory, bytes);
    std::vector<unsigned char> content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        content[i] = expected(program.rank(), round, i);
    }
    program.require(out.write(0, content.data(), bytes));
    const Call call{
        {ElementKind::kFloat32, ReduceOp::kSum, Values::kRandom, static_cast<std::uint32_t>(round)},
        std::max<std::size_t>(bytes / sizeof(float), 1)};
    const int count = static_cast<int>(bytes);
    if (around) {
        MPI_Request requests[2];
        MPI_Irecv(in.data(), count, MPI_BYTE, previous, round, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out.data(), count, MPI_BYTE, next, round, MPI_COMM_WORLD, &requests[1]);
        check_allreduce(program, MPI_COMM_WORLD, call);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else {
        MPI_Sendrecv(out.data(), count, MPI_BYTE, next, round, in.data(), count, MPI_BYTE, previous,
                     round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_allreduce(program, MPI_COMM_WORLD, call);
    }
    program.require(in.read(0, content.data(), bytes));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
        wrong += content[i] != expected(previous, round, i) ? 1 : 0;
    }
    program.check(wrong == 0, "message %d of %zu bytes from rank %d: %zu are wrong", round, bytes,
                  previous, wrong);
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const bool host = argc > 1 && std::string_view(argv[1]) == "host";
    Program program(argc, argv, "point_to_point");
    for (int round = 0; round < 20; ++round) {
        pass_on(program, host ? hetcoll::Memory::kHost : hetcoll::Memory::kDevice, round,
                kCounts[round % 5], round % 2 == 1);
    }
    return program.finish();
}
