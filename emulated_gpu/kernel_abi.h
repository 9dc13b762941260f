/* The contract of the emulated driver and a library of host-compiled kernels. The driver finds the
 * library through EMU_KERNELS=path[:path...] and asks it for its table when cuInit is called. */
#ifndef HETCOLL_EMULATED_GPU_KERNEL_ABI_H
#define HETCOLL_EMULATED_GPU_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMULATED_GPU_KERNEL_ABI 3

struct emulated_gpu_dim {
    unsigned x, y, z;
};

/* One cuLaunchKernel. */
struct emulated_gpu_launch {
    struct emulated_gpu_dim grid, block;
    unsigned dynamic_shared_bytes;
    int collapse; /* run a collapsible kernel as one wide thread: same result, much faster */
};

enum emulated_gpu_argument {
    EMULATED_GPU_VALUE = 0,   /* number: handed on as it is */
    EMULATED_GPU_POINTER = 1, /* checked, and translated to where kernels can reach it */
    EMULATED_GPU_STRUCT = 2   /* every aligned 8-byte word that is a device address is translated */
};

enum emulated_gpu_kernel_flag {
    EMULATED_GPU_COLLAPSIBLE =
        1 /* grid-stride loop: the result does not depend on the launch shape */
};

enum emulated_gpu_access {
    EMULATED_GPU_READS = 1,
    EMULATED_GPU_WRITES = 2,
    /* A flag of 4 or 8 bytes that is written last: a poller sees it when the links have carried
     * everything else. While the kernel runs, arguments that hold its address point elsewhere. The
     * flag itself is neither charged nor counted. */
    EMULATED_GPU_SIGNALS = 4,
    /* Addresses of eight bytes each. While the kernel runs, arguments that hold `start` point to a
     * copy, made when the kernel begins, in which device addresses are translated. */
    EMULATED_GPU_ADDRESSES = 8
};

/* Takes one range of memory that a launch touches. */
typedef void (*emulated_gpu_touch)(void *to, const void *start, uint64_t bytes, unsigned access);

struct emulated_gpu_kernel {
    const char *name; /* as cuModuleGetFunction asks for it */
    void (*run)(const struct emulated_gpu_launch *launch, void **arguments);
    unsigned argument_count;
    const uint32_t
        *argument_bytes; /* of each argument: they are copied when the kernel is launched */
    const uint8_t *argument_kind; /* enum emulated_gpu_argument */
    unsigned flags;
    /* May be null. Else it is called when the kernel is launched, with the arguments as the program
     * passed them (device addresses: not to be followed), and calls touch(to, ...) for every range
     * that the kernel will read or write. A range that is read and written is named once with both
     * or once with each. Links between devices and EMU_CHECK_FOOTPRINT go by it. */
    void (*footprint)(const struct emulated_gpu_launch *launch, void *const *arguments,
                      emulated_gpu_touch touch, void *to);
};

struct emulated_gpu_kernel_table {
    uint32_t abi; /* EMULATED_GPU_KERNEL_ABI */
    uint32_t count;
    const struct emulated_gpu_kernel *kernels;
};

/* A kernel library exports this function under the name of EMULATED_GPU_KERNELS_SYMBOL. */
typedef const struct emulated_gpu_kernel_table *(*emulated_gpu_kernels_function)(void);
#define EMULATED_GPU_KERNELS_SYMBOL "emulated_gpu_kernels"

#ifdef __cplusplus
}
#endif
#endif
