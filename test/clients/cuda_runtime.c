/* The functions of the CUDA runtime that ucx_perftest uses, by the driver alone: the real runtime
 * needs tables of the driver that the emulated one has not. Kernels are registered and never
 * launched. */
#include <cuda.h>

#include <stddef.h>

enum { OK = 0, FAILED = 999 };

static int last = OK;

static int result_of(CUresult result)
{
    last = CUDA_SUCCESS == result ? OK : FAILED;
    return last;
}

static CUdeviceptr address(const void *pointer) { return (CUdeviceptr)pointer; }

int cudaGetDeviceCount(int *count)
{
    const CUresult result = cuInit(0);
    return result_of(CUDA_SUCCESS == result ? cuDeviceGetCount(count) : result);
}

int cudaSetDevice(int ordinal)
{
    CUdevice device;
    CUcontext context;
    CUresult result = cuInit(0);
    if (CUDA_SUCCESS == result) {
        result = cuDeviceGet(&device, ordinal);
    }
    if (CUDA_SUCCESS == result) { /* kept: the process ends with it */
        result = cuDevicePrimaryCtxRetain(&context, device);
    }
    return result_of(CUDA_SUCCESS == result ? cuCtxSetCurrent(context) : result);
}

int cudaMalloc(void **memory, size_t bytes)
{
    return result_of(cuMemAlloc((CUdeviceptr *)memory, bytes));
}

int cudaMallocManaged(void **memory, size_t bytes, unsigned flags)
{
    return result_of(cuMemAllocManaged((CUdeviceptr *)memory, bytes, flags));
}

int cudaFree(void *memory)
{
    return result_of(NULL == memory ? CUDA_SUCCESS : cuMemFree(address(memory)));
}

int cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    return result_of(cuMemHostAlloc(memory, bytes, flags));
}

int cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    return result_of(cuMemHostGetDevicePointer((CUdeviceptr *)device, host, flags));
}

int cudaFreeHost(void *memory) { return result_of(cuMemFreeHost(memory)); }

int cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    (void)kind;
    return result_of(cuMemcpy(address(to), address(from), bytes));
}

int cudaMemset(void *memory, int value, size_t bytes)
{
    return result_of(cuMemsetD8(address(memory), (unsigned char)value, bytes));
}

int cudaDeviceSynchronize(void) { return result_of(cuCtxSynchronize()); }

int cudaGetLastError(void)
{
    const int result = last;
    last = OK;
    return result;
}

const char *cudaGetErrorString(int result)
{
    return OK == result ? "no error" : "the driver failed";
}

int cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    (void)symbol;
    *bytes = 0;
    return FAILED;
}

static int binary;
void **__cudaRegisterFatBinary(void *image)
{
    static void *handle = &binary;
    (void)image;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
void __cudaRegisterFunction(void **handle) { (void)handle; }
void __cudaRegisterVar(void **handle) { (void)handle; }
int __cudaGetKernel(void) { return FAILED; }
int __cudaLaunchKernel(void) { return FAILED; }
int __cudaPopCallConfiguration(void) { return FAILED; }
int __cudaPushCallConfiguration(void) { return FAILED; }
