/* The emulated driver's exports in addition to the CUDA driver API, for tests: look these up with
 * dlsym in the loaded libcuda.so.1. A real driver has none of them. */
#ifndef HETCOLL_EMULATED_GPU_EMULATED_GPU_H
#define HETCOLL_EMULATED_GPU_EMULATED_GPU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The marker: present in the emulated driver only. */
const char *emulated_gpu_version(void);

/* How often an entry point was called in this process, by the name in the CUDA documentation
 * (cuMemAlloc, not cuMemAlloc_v2); or one of the counters
 *   all_calls        driver calls together
 *   pageable_copies  copies from or to host memory that is not page-locked, and pageable_bytes
 *   htod_bytes, dtoh_bytes, dtod_bytes, htoh_bytes
 *   launches         kernels
 *   kernel_read_bytes, kernel_write_bytes   device memory that kernels touched, as they declare it
 *   holding_calls    that waited and let no other thread give work to the streams (EMU_HOSTILE)
 *   held_calls       that waited for one of these
 *   bytes_0_1        from device 0 of the node to device 1; h is the host: bytes_0_h
 *   link_gpu0_plx0   over a link of EMU_LINKS, by the names of its ends
 * Zero for a name that was never called. */
uint64_t emulated_gpu_calls(const char *name);

/* Bytes that copies and kernels of this process moved from one device of the node to another; -1 is
 * the host. */
uint64_t emulated_gpu_link_bytes(int from, int to);

/* Replaces the faults of EMU_FAIL, in its syntax: "cuMemAlloc:1:2,cuLaunchKernel:+3:719". Calls are
 * counted from now. NULL or "" is no fault. */
void emulated_gpu_set_faults(const char *faults);

/* From now on `told` hears of each driver call that answers an injected fault, or the error of a
 * context that one has ruined: on the thread of the call, before it returns, and with its name as
 * above. NULL: nobody does. */
void emulated_gpu_tell_failures(void (*told)(const char *call, int code));

/* For the emulated GDRCopy: an open file that holds `bytes` of device memory from `address` on, and
 * where in it they begin. They may reach beyond an allocation, as pages do. -1: not this memory, or
 * EMU_GDR is not set. The caller closes it. */
int emulated_gpu_open_memory(uint64_t address, uint64_t bytes, int64_t *offset);

/* Adds host-compiled kernels to those of EMU_KERNELS: a test can bring its own (cuda_on_host.h).
 * The table must stay. Returns 0, or -1 if it has another version than the driver. */
struct emulated_gpu_kernel_table;
int emulated_gpu_add_kernels(const struct emulated_gpu_kernel_table *table);

/* Makes everything that runs on the devices of this process wait: while held, copies, kernels and
 * events stay pending. Nested; zero ends it. */
void emulated_gpu_hold_devices(int hold);

/* With EMU_STEPPED: runs one piece of work that is due in some stream, on this thread; which one,
 * EMU_SEED says. Nonzero; zero if nothing is due. */
int emulated_gpu_step(void);

/* For the emulated runtime. It keeps the primary context of a device until the process ends, which
 * is no leak. */
void emulated_gpu_runtime_keeps(int device, int keeps);

#ifdef __cplusplus
}
#endif
#endif
