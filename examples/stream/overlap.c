/* A training loop whose gradients are summed over all ranks while the backward pass goes on: layer
 * by layer, on a second stream, and nothing but the end of a step waits.
 *
 *     mpicc overlap.c -I/usr/local/cuda/include -lcuda -ldl -o overlap
 *     mpirun --mca coll hetcoll -n 4 ./overlap
 *
 * Runs under any MPI that takes device memory: without hetcoll the calls synchronise. */
#include <cuda.h>
#include <hetcoll_stream.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LAYERS = 6, STEPS = 10, COUNT = 100000 };

#define CHECK(call)                                    \
    do {                                               \
        const int code_ = (int)(call);                 \
        if (code_ != 0) {                              \
            fprintf(stderr, "%s: %d\n", #call, code_); \
            MPI_Abort(MPI_COMM_WORLD, 1);              \
        }                                              \
    } while (0)

int main(int argc, char **argv)
{
    int level, rank, size, wrong = 0;
    CUdevice device;
    CUcontext context;
    CUstream compute, sums;
    CUevent ready, summed;
    CUdeviceptr gradient[LAYERS];
    static int host[COUNT];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&compute, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamCreate(&sums, CU_STREAM_NON_BLOCKING));
    CHECK(cuEventCreate(&ready, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventCreate(&summed, CU_EVENT_DISABLE_TIMING));
    for (int layer = 0; layer < LAYERS; layer++) {
        CHECK(cuMemAlloc(&gradient[layer], sizeof host));
    }
    CHECK(hetcoll_stream_attach(MPI_COMM_WORLD, sums, sizeof host));

    for (int step = 0; step < STEPS; step++) {
        for (int layer = LAYERS - 1; layer >= 0; layer--) {
            /* The backward pass of a layer, in a real program a few kernels. */
            CHECK(
                cuMemsetD32Async(gradient[layer], (unsigned)(rank + step + layer), COUNT, compute));
            /* Its sum begins when the gradient is there. The next layer does not wait for it. */
            CHECK(cuEventRecord(ready, compute));
            CHECK(cuStreamWaitEvent(sums, ready, 0));
            CHECK(hetcoll_allreduce_enqueue(MPI_IN_PLACE, (void *)gradient[layer], COUNT, MPI_INT,
                                            MPI_SUM, MPI_COMM_WORLD, sums));
        }
        /* The optimizer, and the next step, need all sums. The host still waits for nothing. */
        CHECK(cuEventRecord(summed, sums));
        CHECK(cuStreamWaitEvent(compute, summed, 0));
    }
    CHECK(cuStreamSynchronize(compute));
    CHECK(hetcoll_stream_check(MPI_COMM_WORLD, sums));

    for (int layer = 0; layer < LAYERS; layer++) {
        const int right = size * (STEPS - 1 + layer) + size * (size - 1) / 2;
        CHECK(cuMemcpyDtoH(host, gradient[layer], sizeof host));
        for (int i = 0; i < COUNT; i++) {
            wrong += host[i] != right;
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d steps of %d layers on %d ranks, %s: %d elements wrong\n", STEPS, LAYERS, size,
               hetcoll_stream_is_attached(MPI_COMM_WORLD, sums) ? "queued" : "synchronised", wrong);
    }
    CHECK(hetcoll_stream_detach(MPI_COMM_WORLD, sums));
    for (int layer = 0; layer < LAYERS; layer++) {
        CHECK(cuMemFree(gradient[layer]));
    }
    CHECK(cuEventDestroy(ready));
    CHECK(cuEventDestroy(summed));
    CHECK(cuStreamDestroy(sums));
    CHECK(cuStreamDestroy(compute));
    CHECK(cuDevicePrimaryCtxRelease(device));
    MPI_Finalize();
    return wrong != 0;
}
