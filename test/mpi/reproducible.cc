// coll_hetcoll_reproducible: every sum is the left fold of the ranks' elements, ((r0 + r1) + r2) +
// .., bit for bit, whatever the size, the memory, the algorithm, the chunks and the nodes that the
// command line asks for. With "staged" the GPUs' kernels do not load; with "one" only one rank asks
// for it. With "key" no command line does, but the info key of a communicator, and with "some_keys"
// one rank's.
#include "cuda_kernels/reduction.h"
#include "measure/buffer.h"
#include "test/mpi/check.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

// Magnitudes so far apart that every order of additions has its own rounding errors.
template <class T> T wild(std::size_t i, int rank)
{
    std::uint64_t bits =
        (i + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xbf58476d1ce4e5b9u;
    bits ^= bits >> 29;
    bits *= 0x94d049bb133111ebu;
    bits ^= bits >> 32;
    const int exponent = static_cast<int>(bits % 41) - 20;
    const double value = std::ldexp(1.0 + static_cast<double>(bits >> 12) * 0x1p-52, exponent);
    return static_cast<T>((bits & 64) != 0 ? -value : value);
}

template <class T> std::vector<T> input(std::size_t count, int rank)
{
    std::vector<T> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = wild<T>(i, rank);
    }
    return numbers;
}

// The left fold of `ranks`, or from the other end.
template <class T> std::vector<T> fold(std::size_t count, int ranks, bool reverse)
{
    std::vector<T> sum = input<T>(count, reverse ? ranks - 1 : 0);
    for (int r = 1; r < ranks; ++r) {
        const std::vector<T> term = input<T>(count, reverse ? ranks - 1 - r : r);
        for (std::size_t i = 0; i < count; ++i) {
            sum[i] = sum[i] + term[i];
        }
    }
    return sum;
}

enum class Where { kDevice, kHost, kMixed, kForeign };
constexpr const char *kWhere[] = {"device", "host", "mixed", "device to host"};

struct Places {
    Memory send, recv;
};
Places places(Where where, int rank)
{
    switch (where) {
    case Where::kHost: return {Memory::kHost, Memory::kHost};
    case Where::kMixed:
        return rank % 2 == 0 ? Places{Memory::kHost, Memory::kHost}
                             : Places{Memory::kDevice, Memory::kDevice};
    case Where::kForeign: return {Memory::kDevice, rank == 0 ? Memory::kHost : Memory::kDevice};
    default: return {Memory::kDevice, Memory::kDevice};
    }
}

Buffer allocate(Program &program, Memory memory, std::size_t bytes)
{
    auto buffer = Buffer::allocate(&program.gpu(), memory, bytes);
    program.require(buffer.ok() ? Status() : buffer.take_status());
    return std::move(*buffer);
}

template <class T> void check_sum(Program &program, MPI_Comm comm, MPI_Datatype type,
                                  std::size_t count, Where where, bool in_place,
                                  bool nonblocking = false)
{
    int rank = 0, ranks = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const std::size_t bytes = count * sizeof(T);
    const Places at = places(where, rank);
    const Buffer send = allocate(program, at.send, bytes), recv = allocate(program, at.recv, bytes);
    const std::vector<T> mine = input<T>(count, rank), wanted = fold<T>(count, ranks, false);
    program.require((in_place ? recv : send).write(0, mine.data(), bytes));
    const void *from = in_place ? MPI_IN_PLACE : static_cast<const void *>(send.data());
    if (nonblocking) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(from, recv.data(), static_cast<int>(count), type, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Allreduce(from, recv.data(), static_cast<int>(count), type, MPI_SUM, comm);
    }
    std::vector<T> got(count);
    program.require(recv.read(0, got.data(), bytes));
    program.check(std::memcmp(got.data(), wanted.data(), bytes) == 0,
                  "%zu elements of %zu bytes, %s%s%s: not the left fold", count, sizeof(T),
                  kWhere[static_cast<int>(where)], in_place ? ", in place" : "",
                  nonblocking ? ", nonblocking" : "");
}

template <class T> void every_size(Program &program, MPI_Comm comm, MPI_Datatype type)
{
    for (const std::size_t bytes :
         {std::size_t{8}, std::size_t{1'000}, std::size_t{8'192}, std::size_t{8'200},
          std::size_t{65'544}, std::size_t{1} << 20}) {
        for (const Where where : {Where::kDevice, Where::kHost, Where::kMixed}) {
            check_sum<T>(program, comm, type, bytes / sizeof(T), where, false);
            check_sum<T>(program, comm, type, bytes / sizeof(T), where, true);
            check_sum<T>(program, comm, type, bytes / sizeof(T), where, true, true);
        }
        check_sum<T>(program, comm, type, bytes / sizeof(T), Where::kForeign, false);
    }
}

// Half by the operations of hetcoll_types.h, which are user-defined, and its left fold by host
// code.
void half(Program &program, std::size_t count)
{
    const auto numbers = [count](int rank) {
        std::vector<std::uint16_t> all(count);
        for (std::size_t i = 0; i < count; ++i) { // finite, of all magnitudes
            const auto bits = static_cast<std::uint32_t>((i + 1) * 2'654'435'761u +
                                                         static_cast<std::size_t>(rank) * 40'503u);
            all[i] = static_cast<std::uint16_t>((bits >> 8 & 0x83ff) | (bits >> 24) % 25 << 10);
        }
        return all;
    };
    std::vector<std::uint16_t> wanted = numbers(0), got(count);
    for (int rank = 1; rank < program.ranks(); ++rank) {
        host_reduce(ReduceOp::kSum, ElementKind::kFloat16)(wanted.data(), wanted.data(),
                                                           numbers(rank).data(), count);
    }
    const Buffer buffer = allocate(program, Memory::kDevice, 2 * count);
    program.require(buffer.write(0, numbers(program.rank()).data(), 2 * count));
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(count),
                  program.names().datatype(ElementKind::kFloat16),
                  program.names().op(ReduceOp::kSum, ElementKind::kFloat16), MPI_COMM_WORLD);
    program.require(buffer.read(0, got.data(), 2 * count));
    program.check(got == wanted, "%zu halves: not the left fold", count);
}

// Else the checks would prove nothing.
void check_that_the_order_matters(Program &program)
{
    if (program.ranks() > 2) {
        program.check(fold<float>(1000, program.ranks(), false) !=
                          fold<float>(1000, program.ranks(), true),
                      "floats: the order does not matter");
        program.check(fold<double>(1000, program.ranks(), false) !=
                          fold<double>(1000, program.ranks(), true),
                      "doubles: the order does not matter");
    }
}

void by_key(Program &program, bool mine)
{
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info_create(&info);
    if (mine) {
        MPI_Info_set(info, "hetcoll_reproducible", "true");
    }
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    every_size<float>(program, comm, MPI_FLOAT);
    MPI_Comm_free(&comm);
}

void run(Program &program, std::string_view what)
{
    check_that_the_order_matters(program);
    if (what == "key" || what == "some_keys") {
        by_key(program, what == "key" || program.rank() == 1);
        return;
    }
    if (what == "staged") {
        program.gpu();
        const Emulated emulated;
        emulated.set_faults(
            "cuModuleLoadData:*:209,cuModuleLoadDataEx:*:209,cuLibraryLoadData:*:209");
    }
    const std::uint64_t staged = program.counters().read()[HETCOLL_CALLS_STAGED];
    every_size<float>(program, MPI_COMM_WORLD, MPI_FLOAT);
    every_size<double>(program, MPI_COMM_WORLD, MPI_DOUBLE);
    for (const std::size_t count : {std::size_t{5}, std::size_t{4'096}, std::size_t{100'003}}) {
        half(program, count);
    }
    // Ranks of a communicator have an order of their own.
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -program.rank(), &reversed);
    every_size<float>(program, reversed, MPI_FLOAT);
    MPI_Comm_free(&reversed);
    if (what == "staged") {
        program.check(program.ranks() == 1 ||
                          program.counters().read()[HETCOLL_CALLS_STAGED] > staged,
                      "no call was staged");
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const char *const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (argc > 1 && std::string_view(argv[1]) == "one" && rank != nullptr && *rank == '1') {
        setenv("OMPI_MCA_coll_hetcoll_reproducible", "1", 1); // for all of them
    }
    Program program(argc, argv, "reproducible");
    run(program, argc > 1 ? argv[1] : "");
    program.close_gpu();
    return program.finish();
}
