// The input of a rank to a call, and the result that it must get.
#pragma once

#include "test/seeds/plan.h"

#include <cstddef>
#include <vector>

namespace hetcoll::test {

struct Vectors {
    std::vector<std::byte> input, expected;
    std::size_t input_place = 0; // in one buffer for both, the bytes before the input
    std::size_t bytes = 0;       // that a buffer for either needs
};

[[nodiscard]] Vectors vectors_of(const PlannedCall &call, int rank, int ranks);

} // namespace hetcoll::test
