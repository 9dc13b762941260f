// Host memory for a call that runs out of it. A rank that lost its way between two meetings of the
// ranks would leave the others waiting, so a call takes what it misses from a reserve and goes on;
// the next call fills the reserve again, or fails before it has promised anything.
//
// Buffers that a call can do without never come from it (base/spare_memory.h).
//
// The reserve is the process's: its owner is the one function that operator new asks when there is
// no memory (std::set_new_handler), which outside of hetcoll's calls does what was set before it.
#pragma once

#include <cstddef>

namespace hetcoll {

// More than four times what the calls of test/unit/engine_no_memory_test.cc take.
inline constexpr std::size_t kReserveBytes = 1u << 20;

// While one lives there is a reserve.
class MemoryReserve {
public:
    MemoryReserve() noexcept;
    ~MemoryReserve();
    MemoryReserve(const MemoryReserve &) = delete;
    MemoryReserve &operator=(const MemoryReserve &) = delete;

    // False: it has been used, and there is no memory to fill it with. Thread safe.
    [[nodiscard]] static bool fill() noexcept;
    // For who allocates by something else than operator new, and has got nothing: try again. False:
    // it has been used. Thread safe.
    [[nodiscard]] static bool give_up() noexcept;
};

// Lets this thread's allocations come from the reserve while it lives.
class UsesReserve {
public:
    UsesReserve() noexcept;
    ~UsesReserve();
    UsesReserve(const UsesReserve &) = delete;
    UsesReserve &operator=(const UsesReserve &) = delete;
};

} // namespace hetcoll
