#include "schedule/rounds.h"

#include <numeric>
#include <utility>

namespace hetcoll {

Schedule build_for_all(const TeamAlgorithm &algorithm, int rank, int size)
{
    std::vector<int> everyone(size);
    std::iota(everyone.begin(), everyone.end(), 0);
    const int parts = algorithm.part_count(size);
    ScheduleBuilder steps(parts);
    for (const Round &round : algorithm.rounds({everyone, rank}, {0, parts})) {
        for (const Move &move : round) {
            steps.add(move);
        }
    }
    return std::move(steps).finish();
}

} // namespace hetcoll
