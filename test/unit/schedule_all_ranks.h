// The schedules of all ranks, and the names of the algorithms, for tests.
#pragma once

#include "schedule/algorithms.h"

#include <ostream>
#include <vector>

namespace hetcoll::test {

struct NamedAlgorithm {
    const char *name;
    Schedule (*build)(int rank, int size);

    // GoogleTest names a failing case by it.
    friend std::ostream &operator<<(std::ostream &to, const NamedAlgorithm &algorithm)
    {
        return to << algorithm.name;
    }
};

inline constexpr NamedAlgorithm kRecursiveDoubling{"recursive_doubling", build_recursive_doubling};
inline constexpr NamedAlgorithm kRabenseifner{"rabenseifner", build_rabenseifner};
inline constexpr NamedAlgorithm kRing{"ring", build_ring};
inline constexpr NamedAlgorithm kAlgorithms[] = {kRecursiveDoubling, kRabenseifner, kRing};

inline std::vector<Schedule> build_all(const NamedAlgorithm &algorithm, int size)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(algorithm.build(rank, size));
    }
    return schedules;
}

} // namespace hetcoll::test
