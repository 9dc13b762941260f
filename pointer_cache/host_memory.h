// Addresses that are host memory for as long as the process lives, found without a system call: the
// calling thread's own stack, the brk heap and the main program's image. Nothing else is: a mapping
// that is host memory now may be unmapped, and the driver may use its addresses next.
#pragma once

#include <array>
#include <cstdint>

// The end of the brk heap as glibc knows it; what sbrk(0) answers, but UCX patches sbrk().
extern "C" [[gnu::weak]] void *__curbrk;

namespace hetcoll {

class HostMemory {
public:
    HostMemory() noexcept; // reads the limits once

    [[nodiscard]] bool contains(const void *pointer) const noexcept
    {
        const auto address = reinterpret_cast<std::uintptr_t>(pointer);
        return (address >= heap_first_ && address < heap_end()) || contains_elsewhere(address);
    }

private:
    struct Range {
        std::uintptr_t first = 0, end = 0;
    };

    [[nodiscard]] static std::uintptr_t heap_end() noexcept
    {
        return &__curbrk == nullptr
                   ? 0
                   : reinterpret_cast<std::uintptr_t>(__atomic_load_n(&__curbrk, __ATOMIC_RELAXED));
    }
    [[nodiscard]] bool contains_elsewhere(std::uintptr_t address) const noexcept;

    std::uintptr_t heap_first_;    // the kernel's start_brk; UINTPTR_MAX: unknown
    std::array<Range, 4> program_; // segments of the main program, adjacent ones merged
};

} // namespace hetcoll
