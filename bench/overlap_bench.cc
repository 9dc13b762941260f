// overlap_bench [BYTES [ITERATIONS]]: how much of an MPI_Iallreduce of floats on device memory goes
// on while the program computes on the host. As osu_iallreduce computes it:
//
//   overlap = 100 % * (1 - (overall - compute) / pure), at least 0
//
// with `pure` the time of MPI_Iallreduce and MPI_Wait, `compute` a loop on the host that takes as
// long, and `overall` that loop between the two calls. Medians of the slowest rank. Without
// coll_hetcoll_progress_thread only MPI calls let an operation advance, and the loop makes none.
#include "measure/buffer.h"

#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

namespace hetcoll {
namespace {

struct Arguments {
    int bytes = 4 << 20, iterations = 20;
};

bool parse(int argc, char **argv, Arguments &arguments)
{
    int *const values[] = {&arguments.bytes, &arguments.iterations};
    if (argc > 3) {
        return false;
    }
    for (int i = 1; i < argc; ++i) {
        const char *end = argv[i] + std::strlen(argv[i]);
        const auto [stop, code] = std::from_chars(argv[i], end, *values[i - 1]);
        if (code != std::errc() || stop != end || *values[i - 1] < 4) {
            return false;
        }
    }
    return true;
}

double median_us(int iterations, const std::function<void()> &work)
{
    std::vector<double> us;
    for (int i = -2; i < iterations; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        work();
        if (i >= 0) {
            us.push_back((MPI_Wtime() - start) * 1e6);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, us.data(), iterations, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    std::nth_element(us.begin(), us.begin() + iterations / 2, us.end());
    return us[static_cast<std::size_t>(iterations / 2)];
}

void compute_for(double us)
{
    const double end = MPI_Wtime() + us * 1e-6;
    volatile double sum = 0;
    while (MPI_Wtime() < end) {
        for (int i = 0; i < 100; ++i) {
            sum = sum + i;
        }
    }
}

int run(const Arguments &arguments)
{
    int rank = 0, ranks = 0, local_rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    MPI_Comm_free(&node);
    const auto gpu = Gpu::open(local_rank);
    if (!gpu.ok()) {
        std::fprintf(stderr, "overlap_bench: %s\n", gpu.status().message().c_str());
        return 1;
    }
    const auto bytes = static_cast<std::size_t>(arguments.bytes) / 4 * 4;
    const auto buffer = Buffer::allocate(gpu->get(), Memory::kDevice, bytes);
    const std::vector<float> ones(bytes / 4, 1);
    if (!buffer.ok() || !buffer->write(0, ones.data(), bytes).ok()) {
        std::fprintf(stderr, "overlap_bench: no device memory for %zu bytes\n", bytes);
        return 1;
    }
    MPI_Request request;
    const auto start = [&] {
        MPI_Iallreduce(MPI_IN_PLACE, buffer->data(), static_cast<int>(bytes / 4), MPI_FLOAT,
                       MPI_MAX, MPI_COMM_WORLD, &request);
    };
    const auto wait = [&] { MPI_Wait(&request, MPI_STATUS_IGNORE); };
    const double pure = median_us(arguments.iterations, [&] { start(), wait(); });
    const double compute = median_us(arguments.iterations, [&] { compute_for(pure); });
    const double overall =
        median_us(arguments.iterations, [&] { start(), compute_for(pure), wait(); });
    std::vector<float> result(bytes / 4);
    const bool right = buffer->read(0, result.data(), bytes).ok() && result == ones;
    if (rank == 0) {
        std::printf("%-6s %10s %11s %11s %11s %9s\n", "#ranks", "bytes", "pure us", "compute us",
                    "overall us", "overlap");
        std::printf("%-6d %10zu %11.1f %11.1f %11.1f %8.1f%%\n", ranks, bytes, pure, compute,
                    overall, std::max(0.0, 100 * (1 - (overall - compute) / pure)));
    }
    return right ? 0 : 1;
}

} // namespace
} // namespace hetcoll

int main(int argc, char **argv)
{
    int level = 0, exit_code = 2;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    hetcoll::Arguments arguments;
    if (hetcoll::parse(argc, argv, arguments)) {
        exit_code = hetcoll::run(arguments);
    } else {
        std::fprintf(stderr, "usage: overlap_bench [BYTES [ITERATIONS]], numbers from 4 on\n");
    }
    MPI_Finalize();
    return exit_code;
}
