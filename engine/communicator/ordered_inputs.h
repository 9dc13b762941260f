// The operands of a kernel in the order of their ranks.
#pragma once

#include "cuda_kernels/reduction.h"

#include <array>
#include <cstddef>

namespace hetcoll {

class OrderedInputs {
public:
    explicit OrderedInputs(ReduceInputs &inputs) : inputs_(inputs) {}

    void insert(int rank, const void *operand)
    {
        auto at = static_cast<std::size_t>(inputs_.count++);
        for (; at > 0 && rank_of_[at - 1] > rank; --at) {
            rank_of_[at] = rank_of_[at - 1];
            inputs_.input[at] = inputs_.input[at - 1];
        }
        rank_of_[at] = rank;
        inputs_.input[at] = operand;
    }

private:
    ReduceInputs &inputs_;
    std::array<int, kMaxArgumentInputs> rank_of_{};
};

} // namespace hetcoll
