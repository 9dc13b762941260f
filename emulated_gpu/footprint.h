// The memory that kernels declare to touch: the bytes that cross links, the bytes of device memory,
// and, with EMU_CHECK_FOOTPRINT, a check of the declaration by page protection.
#pragma once

#include "emulated_gpu/kernel_abi.h"
#include "emulated_gpu/links.h"
#include "emulated_gpu/window.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace hetcoll::emulated_gpu {

struct Context;

struct TouchedRange {
    Address start;
    std::size_t bytes;
    unsigned access; // enum emulated_gpu_access
};

// A flag that a kernel writes last. The kernel is given the address of `written` in its place.
struct LateFlag {
    Address flag; // as device code reaches it
    std::size_t bytes;
    std::uint64_t written = 0, before = 0;
};

// Addresses that a kernel follows. It is given the address of `copy` in place of `list`.
struct AddressList {
    Address list; // as device code reaches it
    std::vector<Address> copy;
};

struct Footprint {
    bool declared = false;
    std::vector<TouchedRange> ranges{};
    std::vector<Crossing> crossings{};               // one a direction and pair of devices
    std::uint64_t read_bytes = 0, written_bytes = 0; // of device memory
    std::deque<LateFlag> flags{};                    // which stay where they are
    std::deque<AddressList> lists{};                 // likewise
};

// The footprint of a launch whose arguments are still the program's. False, with a message, if it
// names memory that kernels of the context cannot reach: a GPU would fault.
[[nodiscard]] bool read_footprint(const emulated_gpu_kernel &kernel,
                                  const emulated_gpu_launch &launch, void *const *arguments,
                                  const Context &context, Footprint &footprint);

// Call it when the kernel begins.
void translate(std::deque<AddressList> &lists);

// Call these before the kernel runs, and when its bytes are where they belong.
void hold_back(std::deque<LateFlag> &flags);
void let_go(const std::deque<LateFlag> &flags);

// Device work that is not checked: it waits while a checked kernel runs in this process. Costs
// nothing without EMU_CHECK_FOOTPRINT.
class DeviceAccess {
public:
    DeviceAccess();
    ~DeviceAccess();
    DeviceAccess(const DeviceAccess &) = delete;
    DeviceAccess &operator=(const DeviceAccess &) = delete;
};

// While it lives, this thread runs a kernel, and only the pages of device memory that the footprint
// names can be touched. Does nothing for kernels that declare none.
class CheckedKernel {
public:
    CheckedKernel(const emulated_gpu_kernel &kernel, const Footprint &footprint);
    ~CheckedKernel();
    CheckedKernel(const CheckedKernel &) = delete;
    CheckedKernel &operator=(const CheckedKernel &) = delete;
};

// For device work that ended in a fault, whose destructors did not run.
void end_access_after_fault();

// The checked kernel that this thread runs, or null. For the signal handler.
[[nodiscard]] const char *checked_kernel();

} // namespace hetcoll::emulated_gpu
