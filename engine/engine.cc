#include "engine/engine.h"

#include "tuning/build_schedule.h"

namespace hetcoll {

Choice Engine::choice(std::size_t bytes) const noexcept
{
    Query query{
        .bytes = bytes, .ranks = p2p_.size, .forced = {}, .chunk_bytes = agreed_.chunk_bytes};
    if (agreed_.algorithm != 0) {
        query.forced = static_cast<Algorithm>(agreed_.algorithm - 1);
    }
    return choose(query);
}

const Schedule &Engine::schedule(Algorithm algorithm)
{
    std::optional<Schedule> &schedule = schedules_[static_cast<std::size_t>(algorithm)];
    if (!schedule) {
        schedule = build_schedule(algorithm, p2p_.rank, p2p_.size);
    }
    return *schedule;
}

} // namespace hetcoll
