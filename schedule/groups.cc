#include "schedule/groups.h"

namespace hetcoll {

std::vector<int> equal_slices(int gpus, int slices)
{
    std::vector<int> counts;
    for (int gpu = 0, first = 0; gpu < gpus; ++gpu) {
        const int end = ((gpu + 1) * slices + gpus - 1) / gpus;
        counts.push_back(end - first);
        first = end;
    }
    return counts;
}

} // namespace hetcoll
