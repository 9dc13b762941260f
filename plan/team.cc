// Algorithms whose schedules are made of the ranks' numbers alone, and which have one way.
#include "plan/algorithm.h"
#include "schedule/recursive_multiplying.h"
#include "schedule/rounds.h"

#include <bit>

namespace hetcoll {
namespace {

bool is_mirrored(const Way &way, const Cluster &cluster, int ranks_of_node)
{
    const bool of_node = has(way.algorithm, Trait::kFolds)
                             ? is_even_among(way.algorithm, ranks_of_node)
                             : has(way.algorithm, Trait::kMultiplies) && ranks_of_node == 1;
    return of_node && is_even_among(way.algorithm, cluster.node_count());
}

} // namespace

std::unique_ptr<Program> team_program(const Way &way, int rank, const ScheduleParts &parts)
{
    return program_for_all(*team_of(way.algorithm), rank, parts.ranks,
                           way.by_racks ? parts.rack_ranks : 0);
}

bool is_even_among(Algorithm algorithm, int size)
{
    return (!has(algorithm, Trait::kFolds) || std::has_single_bit(static_cast<unsigned>(size))) &&
           (!has(algorithm, Trait::kMultiplies) || multiplies_evenly(size));
}

const AlgorithmPlan kTeamPlan{.program = team_program, .is_mirrored = is_mirrored};

} // namespace hetcoll
