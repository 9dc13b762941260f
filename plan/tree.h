// Packed trees. Rings of messages may carry other parts of the vector at the same time:
// Way::host_parts and adapter_parts, of kSideParts.
#pragma once

#include "machine/build_platform.h"
#include "machine/links.h"
#include "plan/way.h"
#include "schedule/algorithms.h"

#include <vector>

namespace hetcoll {

// The most of kSideParts that may end with the trees of kTree, if latencies are nothing: 0 through
// adapters where ranks cannot send each other anything through them.
[[nodiscard]] SideShares most_sides(const Links &links, int ranks) noexcept;

// The rings of a resolved way, in the order of their channels.
[[nodiscard]] std::vector<SidePath> sides_of(const Way &resolved);

} // namespace hetcoll
