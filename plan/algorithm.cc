#include "plan/algorithm.h"

#include "plan/facts.h"
#include "schedule/rounds.h"

namespace hetcoll {
namespace {

#define HETCOLL_PLAN(constant, enumerator, name, counter, form, needs, sizes, traits, plan, ...) \
    &plan,
constexpr const AlgorithmPlan *kPlans[] = {HETCOLL_ALGORITHMS(HETCOLL_PLAN)};
#undef HETCOLL_PLAN

// Null: not of the form kTeam.
#define HETCOLL_TEAM(constant, enumerator, name, counter, form, ...) \
    HETCOLL_IF_TEAM(form, &enumerator##OfTeam, nullptr),
constexpr const TeamAlgorithm *kTeams[] = {HETCOLL_ALGORITHMS(HETCOLL_TEAM)};
#undef HETCOLL_TEAM

} // namespace

const AlgorithmPlan kKernelPlan{};

const AlgorithmPlan &plan_of(Algorithm algorithm) noexcept
{
    return *kPlans[static_cast<std::size_t>(algorithm)];
}

const TeamAlgorithm *team_of(Algorithm algorithm) noexcept
{
    return kTeams[static_cast<std::size_t>(algorithm)];
}

int radix_of(Algorithm algorithm) noexcept
{
    const TeamAlgorithm *const team = team_of(algorithm);
    return team != nullptr ? team->radix : 0;
}

Way resolve_parts(Way way, std::size_t bytes, const Links &links, int ranks) noexcept
{
    way.chunk_bytes = 0;
    if (const auto resolve = plan_of(way.algorithm).resolve) {
        resolve(way, bytes, links, ranks);
    }
    return way;
}

Schedule build_schedule(const Way &way, int rank, const ScheduleParts &parts)
{
    if (const auto program = schedule_program(way, rank, parts)) {
        return build_program(*program);
    }
    const auto build = plan_of(way.algorithm).build;
    return build != nullptr ? build(way, rank, parts) : Schedule{};
}

std::unique_ptr<Program> schedule_program(const Way &way, int rank, const ScheduleParts &parts)
{
    const auto program = plan_of(way.algorithm).program;
    return program != nullptr ? program(way, rank, parts) : nullptr;
}

} // namespace hetcoll
