// In the order of the ranks, or of the links.
#include "plan/algorithm.h"

#include <algorithm>

namespace hetcoll {
namespace {

std::unique_ptr<Program> program(const Way &way, int rank, const ScheduleParts &parts)
{
    return way.by_links ? rings_program(rank, *parts.rings) : team_program(way, rank, parts);
}

void add_ways(Way way, const Query &query, std::vector<Way> &ways)
{
    ways.push_back(way);
    way.by_links = true;
    if (query.links.link_rings > 0) {
        ways.push_back(way);
    }
}

bool is_mirrored(const Way & /*way*/, const Cluster & /*cluster*/, int /*ranks_of_node*/)
{
    return true;
}

int messages(Algorithm /*algorithm*/, const Query &query)
{
    return std::max(query.ranks, 1) * std::max(query.links.link_rings, 1);
}

} // namespace

const AlgorithmPlan kRingPlan{
    .program = program, .add_ways = add_ways, .is_mirrored = is_mirrored, .messages = messages};

} // namespace hetcoll
