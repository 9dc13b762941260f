/* Sums a vector that lies in GPU memory over all ranks. Build and run: examples/README.md. */
#include <cuda.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static float host[1000];
    CUdevice device;
    CUcontext context;
    CUdeviceptr vector;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cuInit(0);
    cuDeviceGet(&device, 0);
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    cuMemAlloc(&vector, sizeof host);
    for (int i = 0; i < 1000; i++)
        host[i] = rank + 1;
    cuMemcpyHtoD(vector, host, sizeof host);
    MPI_Allreduce(MPI_IN_PLACE, (void *)vector, 1000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    cuMemcpyDtoH(host, vector, sizeof host);
    if (rank == 0)
        printf("every element is %g\n", host[999]);
    cuMemFree(vector);
    MPI_Finalize();
}
