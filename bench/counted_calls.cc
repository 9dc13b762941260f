// Makes one call again and again, for bench/instructions.sh to count its instructions under
// callgrind.
//
//     counted_calls CALL [BYTES [host|device [CALLS]]]
//
// CALL: allreduce, another collective by hetcoll_bench's word for it, barrier, or "duplicate":
// MPI_Comm_dup, one MPI_Allreduce of the duplicate, MPI_Comm_free. BYTES are of the whole vector of
// floats: 8. CALLS: 100. An allreduce of 8 bytes of host memory, and that of "duplicate", use
// static data: valgrind hides from hetcoll where the heap is, so it asks the driver about that.
#include "bench/collective.h"
#include "measure/buffer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

// What callgrind counts, by its name.
extern "C" __attribute__((noinline)) void hetcoll_counted_call(const std::function<void()> &call)
{
    call();
}

namespace hetcoll {
namespace {

int refuse(const Status &status)
{
    std::fprintf(stderr, "counted_calls: %s\n", status.message().c_str());
    return 1;
}

void allreduce_static(MPI_Comm comm)
{
    static const float send[2] = {1, 2};
    static float recv[2];
    MPI_Allreduce(send, recv, 2, MPI_FLOAT, MPI_SUM, comm);
}

int run(const char *word, std::size_t bytes, Memory memory, int calls)
{
    const bool is_barrier = std::strcmp(word, "barrier") == 0,
               is_duplicate = std::strcmp(word, "duplicate") == 0;
    const std::optional<Collective> collective =
        is_barrier || is_duplicate ? Collective::kAllreduce : find_collective(word);
    if (!collective) {
        return refuse(error(Errc::kInvalid, "%s is neither barrier, duplicate nor one of %s", word,
                            collective_words().c_str()));
    }
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    Result<std::unique_ptr<Gpu>> gpu = std::unique_ptr<Gpu>();
    if (memory == Memory::kDevice && !(gpu = Gpu::open(0)).ok()) {
        return refuse(gpu.take_status());
    }
    const auto blocks = static_cast<std::size_t>(block_count(*collective, ranks));
    const VectorSpec spec{{ElementKind::kFloat32, ReduceOp::kSum},
                          MPI_FLOAT,
                          MPI_SUM,
                          std::max<std::size_t>(1, bytes / sizeof(float) / blocks) * blocks,
                          false,
                          memory};
    auto made = *collective == Collective::kAllreduce
                    ? make_vector(gpu->get(), spec)
                    : make_collective(gpu->get(), *collective, spec, rank, ranks);
    if (!made.ok()) {
        return refuse(made.take_status());
    }
    if (const Status filled = (*made)->fill(rank); !filled.ok()) {
        return refuse(filled);
    }
    std::function<void()> call = (*made)->own_call(MPI_COMM_WORLD);
    const WorkloadReduction reduction = (*made)->reduction();
    if (is_barrier) {
        call = [] { MPI_Barrier(MPI_COMM_WORLD); };
    } else if (is_duplicate) {
        call = [] {
            MPI_Comm comm = MPI_COMM_NULL;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            allreduce_static(comm);
            MPI_Comm_free(&comm);
        };
    } else if (!call && memory == Memory::kHost && bytes == 8) {
        call = [] { allreduce_static(MPI_COMM_WORLD); };
    } else if (!call) {
        call = [&] {
            MPI_Allreduce(reduction.send, reduction.recv, static_cast<int>(reduction.count),
                          reduction.type, reduction.op, MPI_COMM_WORLD);
        };
    }
    for (int i = 0; i < calls; ++i) {
        hetcoll_counted_call(call);
    }
    return 0;
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const auto memory = argc > 3 && std::strcmp(argv[3], "device") == 0 ? hetcoll::Memory::kDevice
                                                                        : hetcoll::Memory::kHost;
    const int status = hetcoll::run(argc > 1 ? argv[1] : "allreduce",
                                    argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 8, memory,
                                    argc > 4 ? std::atoi(argv[4]) : 100);
    MPI_Finalize();
    return status;
}
