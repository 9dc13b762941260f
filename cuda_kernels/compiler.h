// The differences between nvcc's GPU code and a host compiler's code of the same function bodies.
#pragma once

#if defined(__CUDACC__)
#define HETCOLL_HD __host__ __device__ __forceinline__
#elif defined(__OPTIMIZE__)
#define HETCOLL_HD inline __attribute__((always_inline))
#else
#define HETCOLL_HD inline
#endif

// True in the code of a GPU. Used in `#if` only for instructions that the other side lacks.
// HETCOLL_GPU_ARCH: of which architecture, 890 for sm_89, 0 in the code of a CPU.
#if defined(__CUDA_ARCH__)
#define HETCOLL_ON_GPU 1
#define HETCOLL_GPU_ARCH __CUDA_ARCH__
#else
#define HETCOLL_ON_GPU 0
#define HETCOLL_GPU_ARCH 0
#endif

// Before a loop: how often nvcc unrolls it. Left alone, it makes the kernels many times larger and
// no faster. A host compiler decides for itself.
#if defined(__CUDACC__)
#define HETCOLL_PRAGMA(text) _Pragma(#text)
#define HETCOLL_UNROLL(times) HETCOLL_PRAGMA(unroll times)
#else
#define HETCOLL_UNROLL(times)
#endif

#if defined(__FAST_MATH__)
#error "the kernels promise the same bits on host and GPU: build them without -ffast-math"
#endif
