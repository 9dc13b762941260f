// The schedules and programs of a hierarchy, for tests.
#pragma once

#include "plan/build_schedule.h"

#include <memory>

namespace hetcoll::test {

inline std::unique_ptr<Program> hierarchical_program(int rank, const Groups &groups, Way way,
                                                     int rack_nodes = 0)
{
    way.algorithm = Algorithm::kHierarchical;
    return schedule_program(way, rank, {.groups = &groups, .rack_nodes = rack_nodes});
}

inline Schedule build_hierarchical(int rank, const Groups &groups, const Way &way,
                                   int rack_nodes = 0)
{
    return build_program(*hierarchical_program(rank, groups, way, rack_nodes));
}

} // namespace hetcoll::test
