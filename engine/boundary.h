// Shared by the boundary's functions: no exception crosses it, and what throws is memory
// exhaustion in the standard library.
#pragma once

#include "engine/process/memory_reserve.h"

#include <new>

namespace hetcoll {

// What `work` returns, with memory of the reserve if it must; if that is not enough, what
// `otherwise` returns.
template <class Work, class Otherwise>
auto if_memory_lasts(const Work &work, const Otherwise &otherwise) noexcept -> decltype(work())
{
    const UsesReserve uses_reserve;
    try {
        return work();
    } catch (const std::bad_alloc &) {
        return otherwise();
    }
}

} // namespace hetcoll
