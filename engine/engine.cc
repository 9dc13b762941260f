#include "engine/engine.h"

#include "schedule/algorithms.h"

namespace hetcoll {

Choice Engine::choice(std::size_t bytes) const noexcept
{
    Query query{.bytes = bytes, .ranks = p2p_.size, .forced = {}, .chunk_bytes = agreed_.chunk_bytes};
    if (agreed_.algorithm != 0) {
        query.forced = static_cast<Algorithm>(agreed_.algorithm - 1);
    }
    return choose(query);
}

const Schedule &Engine::schedule(Algorithm algorithm)
{
    std::optional<Schedule> &schedule = schedules_[static_cast<std::size_t>(algorithm)];
    if (!schedule) {
        switch (algorithm) {
        case Algorithm::kRecursiveDoubling:
            schedule = build_recursive_doubling(p2p_.rank, p2p_.size);
            break;
        case Algorithm::kRabenseifner:
            schedule = build_rabenseifner(p2p_.rank, p2p_.size);
            break;
        case Algorithm::kRing: schedule = build_ring(p2p_.rank, p2p_.size); break;
        }
    }
    return *schedule;
}

} // namespace hetcoll
