// Warns of what keeps a communicator from the best that hetcoll can do, with the way out.
#pragma once

#include "engine/communicator/agreed_settings.h"
#include "engine/meeting/node_group.h"
#include "engine/process/process.h"

#include <span>

namespace hetcoll {

// Ranks in different containers on one machine: they could share GPU memory, and do not. facts[r]
// are those of rank r.
void say_split_machine(Process &process, const NodeGroup &group,
                       std::span<const hetcoll_facts> facts);

// Once a communicator, or once a process: what its ranks have set to different values is not used.
void say_what_differs(Process &process, const NodeGroup &group, const AgreedSettings &agreed);

// After a meeting with a vector, or the first: why there is no page, or no room for it.
void say_page_problem(Process &process, NodeGroup &group);

} // namespace hetcoll
