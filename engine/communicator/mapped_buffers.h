#pragma once

#include "pointer_cache/pointer_cache.h"

#include <cstddef>

namespace hetcoll {

struct Scratch;

// Where a rank's buffers are: of the call, or what stands in for them.
struct MappedBuffers {
    const void *send;
    void *recv; // equal to send in place
    PointerInfo send_info, recv_info;
    bool foreign; // `send` is in another context or kind of memory than `recv`
    std::size_t bytes;
    bool keep_input = false;            // even in place, where there is memory for that
    int late = -1;                      // Choice's: who maps a buffer depends on it too
    const Scratch *stands_in = nullptr; // what the vectors are copied to, and peers have mapped
};
struct MappedCopy {
    void *to = nullptr; // null: nothing is to be copied
    const void *from = nullptr;
};

} // namespace hetcoll
