// Counts what hetcoll allocates in this program, itself or through the C++ library; not what Open
// MPI and the driver allocate for it. The functions of malloc are the program's own.
#pragma once

#include <cstddef>

namespace hetcoll::test {

// Is told of each such allocation, one at a time; false: there is no memory for it. Null: nobody
// is, as at first.
using OwnAllocation = bool (*)();
void watch_own_allocations(OwnAllocation watcher);
// The largest block that has been freed since then, in bytes.
[[nodiscard]] std::size_t largest_freed();

} // namespace hetcoll::test
