// Packed trees, beside which rings of messages may carry parts of the vector: Way::host_parts and
// adapter_parts of kSideParts.
#pragma once

#include "machine/links.h"
#include "machine/sim_machine.h"
#include "plan/way.h"

#include <vector>

namespace hetcoll {

// The most of kSideParts that may end with the trees of kTree, if latencies are nothing.
[[nodiscard]] int most_host_parts(const Links &links, int ranks) noexcept;
// Likewise through adapters: 0 where ranks cannot send each other anything through them.
[[nodiscard]] int most_adapter_parts(const Links &links, int ranks) noexcept;

// The rings of a resolved way, in the order of their channels.
[[nodiscard]] std::vector<SidePath> sides_of(const Way &resolved);

} // namespace hetcoll
