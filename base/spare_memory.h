// Host memory that its user can do without, often much of it. None of it comes from what is kept
// for small allocations in a call that runs out of memory (engine/process/memory_reserve.h).
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace hetcoll {

// Whether this thread allocates such memory now: a handler of std::set_new_handler may ask.
inline constinit thread_local bool allocates_spare_memory = false;

// Null if there is none.
inline std::unique_ptr<std::byte[]> try_allocate(std::size_t bytes) noexcept
{
    allocates_spare_memory = true;
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes]);
    allocates_spare_memory = false;
    return memory;
}

} // namespace hetcoll
