// The direct links between the GPUs of a job, as whole units of one speed: what trees are packed
// into. NVLink bricks on a DGX-1, for example, or GB/s where paths of other kinds are in it.
#pragma once

#include <vector>

namespace hetcoll {

struct LinkUnits {
    int gpus = 0;
    std::vector<int> units; // row-major gpus x gpus, symmetric, 0 on the diagonal
    double unit_gbps = 0;   // GB/s (1e9 bytes/s) of one unit in each direction
};

} // namespace hetcoll
