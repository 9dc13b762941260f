// A program that nvcc compiles, with the shared CUDA runtime: a kernel makes the input, on the
// default stream and on one of the program's, and MPI_Allreduce sums it.
//
//   runtime_kernels           on a GPU, or with runtime_kernels_on_host in EMU_KERNELS
//   runtime_kernels without   the launch is an error that says so
#include "test/mpi/runtime_kernels.cuh"

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

constexpr int kCount = 100'003;

int rank, ranks, failures;

void must(cudaError_t result, const char *what)
{
    if (result != cudaSuccess) {
        std::printf("WRONG rank %d: %s is %s\n", rank, what, cudaGetErrorName(result));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

void sums_of_a_kernel(double *memory, cudaStream_t stream)
{
    fill<<<dim3(8), dim3(128), 0, stream>>>(memory, kCount, rank + 1);
    must(cudaGetLastError(), "the launch");
    if (stream != nullptr) {
        must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }
    MPI_Allreduce(MPI_IN_PLACE, memory, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    std::vector<double> sums(kCount);
    must(cudaMemcpy(sums.data(), memory, kCount * sizeof(double), cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    for (int i = 0; i < kCount; ++i) {
        failures += sums[i] != ranks * (ranks + 1) / 2 * (i % 1000 + 1);
    }
}

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *memory = nullptr;
    must(cudaMalloc(&memory, kCount * sizeof(double)), "cudaMalloc");
    if (argc > 1 && std::strcmp(argv[1], "without") == 0) {
        for (int i = 0; i < 2; ++i) {
            fill<<<1, 1>>>(memory, kCount, 1);
            failures += cudaGetLastError() != cudaErrorNoKernelImageForDevice;
        }
    } else {
        cudaStream_t stream;
        must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        sums_of_a_kernel(memory, nullptr);
        sums_of_a_kernel(memory, stream);
        must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    }
    must(cudaFree(memory), "cudaFree");
    if (failures != 0) {
        std::printf("WRONG rank %d: %d elements or launches\n", rank, failures);
    } else if (rank == 0) {
        std::printf("ok   what a program's kernel made\n");
    }
    MPI_Finalize();
    return failures != 0;
}
