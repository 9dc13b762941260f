// Makes one call again and again, for bench/instructions.sh to count its instructions under
// callgrind.
//
//     counted_calls CALL [host|device [CALLS]]
//
// CALL: a word of kCalls below. Two floats, or two a rank, of two ranks. Host memory is static
// data: valgrind hides from hetcoll where the heap is. CALLS: 100.
#include "measure/buffer.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kRanks = 2;
const MPI_Comm kWorld = MPI_COMM_WORLD;
const MPI_Datatype kFloat = MPI_FLOAT;

struct Vectors {
    const void *send;
    void *recv;
};

void allreduce(const Vectors &v, MPI_Comm comm)
{
    MPI_Allreduce(v.send, v.recv, 2, kFloat, MPI_SUM, comm);
}

void duplicate(const Vectors &v)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(kWorld, &comm);
    allreduce(v, comm);
    MPI_Comm_free(&comm);
}

constexpr int kCounts[kRanks] = {1, 1}, kAt[kRanks] = {0, 1};

// clang-format off
const struct {
    const char *word;
    void (*call)(const Vectors &v);
} kCalls[] = {
    {"allreduce", [](const Vectors &v) { allreduce(v, kWorld); }},
    {"bcast", [](const Vectors &v) { MPI_Bcast(v.recv, 2, kFloat, 0, kWorld); }},
    {"reduce", [](const Vectors &v) { MPI_Reduce(v.send, v.recv, 2, kFloat, MPI_SUM, 0, kWorld); }},
    {"allgather", [](const Vectors &v) { MPI_Allgather(v.send, 1, kFloat, v.recv, 1, kFloat, kWorld); }},
    {"allgatherv", [](const Vectors &v) { MPI_Allgatherv(v.send, 1, kFloat, v.recv, kCounts, kAt, kFloat, kWorld); }},
    {"reduce_scatter", [](const Vectors &v) { MPI_Reduce_scatter(v.send, v.recv, kCounts, kFloat, MPI_SUM, kWorld); }},
    {"reduce_scatter_block", [](const Vectors &v) { MPI_Reduce_scatter_block(v.send, v.recv, 1, kFloat, MPI_SUM, kWorld); }},
    {"alltoall", [](const Vectors &v) { MPI_Alltoall(v.send, 1, kFloat, v.recv, 1, kFloat, kWorld); }},
    {"alltoallv", [](const Vectors &v) { MPI_Alltoallv(v.send, kCounts, kAt, kFloat, v.recv, kCounts, kAt, kFloat, kWorld); }},
    {"gather", [](const Vectors &v) { MPI_Gather(v.send, 1, kFloat, v.recv, 1, kFloat, 0, kWorld); }},
    {"gatherv", [](const Vectors &v) { MPI_Gatherv(v.send, 1, kFloat, v.recv, kCounts, kAt, kFloat, 0, kWorld); }},
    {"scatter", [](const Vectors &v) { MPI_Scatter(v.send, 1, kFloat, v.recv, 1, kFloat, 0, kWorld); }},
    {"scatterv", [](const Vectors &v) { MPI_Scatterv(v.send, kCounts, kAt, kFloat, v.recv, 1, kFloat, 0, kWorld); }},
    {"scan", [](const Vectors &v) { MPI_Scan(v.send, v.recv, 2, kFloat, MPI_SUM, kWorld); }},
    {"exscan", [](const Vectors &v) { MPI_Exscan(v.send, v.recv, 2, kFloat, MPI_SUM, kWorld); }},
    {"barrier", [](const Vectors &) { MPI_Barrier(kWorld); }},
    {"duplicate", duplicate}, // MPI_Comm_dup, an allreduce of the duplicate, MPI_Comm_free
};
// clang-format on

} // namespace
} // namespace hetcoll

// The function that callgrind counts, by its name.
extern "C" __attribute__((noinline)) void
hetcoll_counted_call(void (*call)(const hetcoll::Vectors &), const hetcoll::Vectors &vectors)
{
    call(vectors);
}

namespace hetcoll {
namespace {

int run(const char *word, bool device, int calls)
{
    static const float send[2] = {1, 2};
    static float recv[2];
    Vectors vectors{send, recv};
    int ranks = 0;
    MPI_Comm_size(kWorld, &ranks);
    if (ranks != kRanks) {
        std::fprintf(stderr, "counted_calls: %d ranks, not %d\n", ranks, kRanks);
        return 1;
    }
    std::unique_ptr<Gpu> gpu;
    std::optional<Buffer> in, out;
    if (device) {
        auto opened = Gpu::open(0);
        if (!opened.ok()) {
            std::fprintf(stderr, "counted_calls: %s\n", opened.status().message().c_str());
            return 1;
        }
        gpu = std::move(*opened);
        auto a = Buffer::allocate(gpu.get(), Memory::kDevice, sizeof send);
        auto b = Buffer::allocate(gpu.get(), Memory::kDevice, sizeof send);
        if (!a.ok() || !b.ok() || !a->write(0, send, sizeof send).ok()) {
            std::fprintf(stderr, "counted_calls: no device memory\n");
            return 1;
        }
        in.emplace(std::move(*a)), out.emplace(std::move(*b));
        vectors = {in->data(), out->data()};
    }
    allreduce(vectors, kWorld); // as a program that uses hetcoll has done
    for (const auto &one : kCalls) {
        if (std::strcmp(one.word, word) == 0) {
            for (int i = 0; i < calls; ++i) {
                hetcoll_counted_call(one.call, vectors);
            }
            return 0;
        }
    }
    std::fprintf(stderr, "counted_calls: no call is named %s\n", word);
    return 1;
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const bool device = argc > 2 && std::strcmp(argv[2], "device") == 0;
    const int status =
        hetcoll::run(argc > 1 ? argv[1] : "", device, argc > 3 ? std::atoi(argv[3]) : 100);
    MPI_Finalize();
    return status;
}
