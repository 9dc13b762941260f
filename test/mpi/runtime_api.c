/* MPI_Allreduce on memory of the CUDA runtime API, in plain C, as MPI's own test suites and
 * benchmarks call it: sums on the default stream, behind a stream of the program's, and what the
 * runtime says of pointers, devices and errors. */
#include <cuda_runtime_api.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 300007 };

static int rank, ranks, failures;

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            printf("WRONG rank %d, line %d: %s\n", rank, __LINE__, #condition); \
            ++failures;                                                         \
        }                                                                       \
    } while (0)

/* A program cannot go on after a failed call. */
#define MUST(call)                                                                         \
    do {                                                                                   \
        const cudaError_t result_ = (call);                                                \
        if (result_ != cudaSuccess) {                                                      \
            printf("WRONG rank %d: %s is %s\n", rank, #call, cudaGetErrorString(result_)); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                  \
        }                                                                                  \
    } while (0)

static double input(int of, int i) { return (of + 1) * (i % 1000 + 1); }

static void check_sums(const double *sums)
{
    for (int i = 0; i < COUNT; ++i) {
        if (sums[i] != ranks * (ranks + 1) / 2 * (i % 1000 + 1)) {
            printf("WRONG rank %d: element %d is %g\n", rank, i, sums[i]);
            ++failures;
            return;
        }
    }
}

/* The copy to `memory` may still be under way when MPI is called, on the legacy stream; a stream of
 * another kind is synchronized first, as MPI_Allreduce knows nothing of it. */
static void sums_behind_work(double *host, double *memory, cudaStream_t stream)
{
    cudaEvent_t begun, ended;
    float ms = -1;
    MUST(cudaEventCreate(&begun));
    MUST(cudaEventCreate(&ended));
    for (int i = 0; i < COUNT; ++i) {
        host[i] = input(rank, i);
    }
    MUST(cudaMemsetAsync(memory, 0xff, COUNT * sizeof *memory, stream));
    MUST(cudaEventRecord(begun, stream));
    MUST(cudaMemcpyAsync(memory, host, COUNT * sizeof *memory, cudaMemcpyHostToDevice, stream));
    MUST(cudaEventRecord(ended, stream));
    if (stream != NULL) {
        MUST(cudaStreamSynchronize(stream));
        CHECK(cudaEventQuery(ended) == cudaSuccess);
    }
    MPI_Allreduce(MPI_IN_PLACE, memory, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    memset(host, 0, COUNT * sizeof *host);
    MUST(cudaMemcpyAsync(host, memory, COUNT * sizeof *memory, cudaMemcpyDefault, stream));
    MUST(cudaStreamSynchronize(stream));
    check_sums(host);
    MUST(cudaEventElapsedTime(&ms, begun, ended));
    CHECK(ms >= 0);
    MUST(cudaEventDestroy(begun));
    MUST(cudaEventDestroy(ended));
}

static void sums(void)
{
    double *host, *memory, *managed;
    cudaStream_t stream, aside;
    MUST(cudaMallocHost((void **)&host, COUNT * sizeof *host));
    MUST(cudaMalloc((void **)&memory, COUNT * sizeof *memory));
    MUST(cudaMallocManaged((void **)&managed, COUNT * sizeof *managed, cudaMemAttachGlobal));
    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking));
    sums_behind_work(host, memory, NULL);
    sums_behind_work(host, memory, stream);
    sums_behind_work(host, memory, aside);
    for (int i = 0; i < COUNT; ++i) {
        managed[i] = input(rank, i);
    }
    MPI_Allreduce(managed, memory, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MUST(cudaMemcpy(host, memory, COUNT * sizeof *host, cudaMemcpyDeviceToHost));
    check_sums(host);
    MUST(cudaStreamDestroy(stream));
    MUST(cudaStreamDestroy(aside));
    MUST(cudaFree(managed));
    MUST(cudaFree(memory));
    MUST(cudaFreeHost(host));
}

static void pointers(void)
{
    struct cudaPointerAttributes found;
    int on_stack = 0, device = -1;
    void *memory, *managed, *pinned;
    MUST(cudaGetDevice(&device));
    MUST(cudaMalloc(&memory, 1000));
    MUST(cudaMallocManaged(&managed, 1000, cudaMemAttachGlobal));
    MUST(cudaHostAlloc(&pinned, 1000, cudaHostAllocPortable));
    MUST(cudaPointerGetAttributes(&found, memory));
    CHECK(found.type == cudaMemoryTypeDevice && found.device == device);
    CHECK(found.devicePointer == memory && found.hostPointer == NULL);
    MUST(cudaPointerGetAttributes(&found, managed));
    CHECK(found.type == cudaMemoryTypeManaged && found.hostPointer == managed);
    MUST(cudaPointerGetAttributes(&found, pinned));
    CHECK(found.type == cudaMemoryTypeHost && found.hostPointer == pinned);
    MUST(cudaPointerGetAttributes(&found, &on_stack));
    CHECK(found.type == cudaMemoryTypeUnregistered);
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(managed));
    MUST(cudaFree(memory));
    MUST(cudaMalloc(&memory, 0));
    CHECK(memory == NULL);
}

static void devices_and_errors(void)
{
    struct cudaDeviceProp properties;
    char bus_id[32];
    int device = -1;
    MUST(cudaGetDevice(&device));
    MUST(cudaGetDeviceProperties(&properties, device));
    CHECK(properties.name[0] != '\0' && properties.totalGlobalMem > 0 && properties.major > 0);
    MUST(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));
    CHECK(strlen(bus_id) >= strlen("0000:00:00.0"));
    CHECK(cudaSetDevice(1000) == cudaErrorInvalidDevice);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice && cudaGetLastError() == cudaSuccess);
    CHECK(strcmp(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice") == 0);
    CHECK(strcmp(cudaGetErrorString(cudaErrorNotReady), "device not ready") == 0);
    CHECK(cudaFree(&device) == cudaErrorInvalidValue && cudaGetLastError() != cudaSuccess);
}

int main(int argc, char **argv)
{
    int count = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MUST(cudaGetDeviceCount(&count));
    MUST(cudaSetDevice(rank % count));
    sums();
    pointers();
    devices_and_errors();
    MUST(cudaDeviceSynchronize());
    MUST(cudaDeviceReset()); /* what hetcoll has made there is gone; the next call starts from
                                nothing */
    sums();
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && failures == 0) {
        printf("ok   sums in memory of the CUDA runtime\n");
    }
    MPI_Finalize();
    return failures != 0;
}
