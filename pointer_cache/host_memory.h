// Addresses that are host memory for as long as the process lives, found without a system call: the
// calling thread's own stack, the brk heap and the main program's image. Nothing else is: a mapping
// that is host memory now may be unmapped, and the driver may use its addresses next.
#pragma once

#include <array>
#include <cstdint>

namespace hetcoll {

class HostMemory {
public:
    HostMemory() noexcept; // reads the limits once

    [[nodiscard]] bool contains(const void *pointer) const noexcept;

private:
    struct Range {
        std::uintptr_t first = 0, end = 0;
    };

    std::uintptr_t heap_first_;    // the kernel's start_brk; UINTPTR_MAX: unknown
    std::array<Range, 4> program_; // segments of the main program, adjacent ones merged
};

} // namespace hetcoll
