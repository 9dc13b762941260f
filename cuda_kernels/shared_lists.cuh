// The operands of a many-input kernel where all threads of a block find their addresses: in shared
// memory, because a block reads those that are not arguments over the bus.
#pragma once

#include "cuda_kernels/compiler.h"
#include "cuda_kernels/reduction.h"

namespace hetcoll {

struct ListedOperands {
    ListedOutputs outputs;
    ListedInputs inputs;
};

// All threads of a block call it.
__device__ __forceinline__ ListedOperands share_lists(const ReduceOutputs &outputs,
                                                      const ReduceInputs &inputs)
{
#if HETCOLL_ON_GPU
    __shared__ OperandLists lists;
    HETCOLL_UNROLL(1)
    for (unsigned k = threadIdx.x; k < inputs.count; k += blockDim.x) {
        lists.input[k] = inputs.count <= kMaxArgumentInputs ? inputs.input[k] : inputs.list[k];
    }
    HETCOLL_UNROLL(1)
    for (unsigned k = threadIdx.x; k < outputs.count; k += blockDim.x) {
        lists.output[k] = outputs.count <= kMaxArgumentInputs ? outputs.output[k] : outputs.list[k];
    }
    __syncthreads();
    return {{lists.output, static_cast<int>(outputs.count)},
            {lists.input, static_cast<int>(inputs.count)}};
#else
    return {listed(outputs), listed(inputs)};
#endif
}

} // namespace hetcoll
