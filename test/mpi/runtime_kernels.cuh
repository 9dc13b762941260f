// A program's own kernel, for nvcc and, with emulated_gpu/cuda_on_host.h, for the host.
#pragma once

__global__ void fill(double *to, int count, double factor)
{
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
         i += static_cast<int>(gridDim.x * blockDim.x)) {
        to[i] = factor * (i % 1000 + 1);
    }
}
