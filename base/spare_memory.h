// Host memory that its user can do without, often much of it. Calls that run out of memory need the
// last of it for small allocations (engine/process/memory_reserve.h), so none of it is given out
// here.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

namespace hetcoll {

// Some call has run out of memory and goes on with what was kept for it.
inline constinit std::atomic<bool> memory_is_short{false};

// This thread allocates spare memory: a handler of std::set_new_handler may ask.
inline constinit thread_local bool allocates_spare_memory = false;

// Null if there is none.
inline std::unique_ptr<std::byte[]> try_allocate(std::size_t bytes) noexcept
{
    if (memory_is_short.load(std::memory_order_relaxed)) {
        return nullptr;
    }
    allocates_spare_memory = true;
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
    allocates_spare_memory = false;
    return memory;
}

} // namespace hetcoll
