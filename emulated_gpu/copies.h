// Copies and fills: which memory is involved, when they may return, and how long a link takes.
#pragma once

#include "emulated_gpu/memory.h"
#include "emulated_gpu/streams.h"

#include <cuda.h>

namespace hetcoll::emulated_gpu {

struct Context;

enum class Place {
    kDevice,
    kManaged,
    kPinned,   // page-locked host memory
    kPageable, // host memory that CUDA does not know
    kNowhere,  // a device address that is not allocated, or a range beyond its allocation
};

struct Span {
    Place place;
    int device; // -1 for host memory
    bool sync_memops;
    int physical_device; // of the node, whether this process sees it or not; kHostMemory
    unsigned open_to;    // devices, as bits, that reach it; others by cuCtxEnablePeerAccess
    bool takes_peers;    // whether that opens it
};

// Where [address, address + bytes) lies. Neighbouring VMM mappings are one range.
[[nodiscard]] Span look_up(Address address, std::size_t bytes);

// Why kernels of the context cannot use what lies there; null if they can.
[[nodiscard]] const char *why_unusable(const Span &span, const Context &context);

// Whether device code may use the range.
[[nodiscard]] bool is_device_reachable(Address address, std::size_t bytes);

} // namespace hetcoll::emulated_gpu
