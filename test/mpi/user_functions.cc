// Reduction functions as applications bring them, in a library that is opened while the program
// runs: those of Horovod under its own symbols, another project's, one that does not do what its
// name says, and one that hetcoll does not know. Each counts how often it is called. Nothing here
// is Horovod's code.
#include "cuda_kernels/numbers.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace {

std::atomic<long> calls{0};

template <class T, class Op> void fold(const void *in, void *inout, const int *count, Op op)
{
    ++calls;
    const auto *a = static_cast<const T *>(in);
    auto *b = static_cast<T *>(inout);
    for (int i = 0; i < *count; ++i) {
        hetcoll::narrow(op(hetcoll::widen(b[i]), hetcoll::widen(a[i])), b[i]);
    }
}

float add(float a, float b) { return a + b; }

} // namespace

#define HETCOLL_EXPORTED __attribute__((visibility("default")))

using hetcoll::Bfloat16;
using hetcoll::Half;

namespace horovod::common {

HETCOLL_EXPORTED void float16_sum(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold<Half>(in, inout, count, add);
}
HETCOLL_EXPORTED void float16_prod(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold<Half>(in, inout, count, [](float a, float b) { return a * b; });
}
HETCOLL_EXPORTED void float16_min(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold<Half>(in, inout, count, [](float a, float b) { return std::min(a, b); });
}
HETCOLL_EXPORTED void float16_max(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold<Half>(in, inout, count, [](float a, float b) { return std::max(a, b); });
}

} // namespace horovod::common

extern "C" {

HETCOLL_EXPORTED void project_bfloat16_max(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold<Bfloat16>(in, inout, count, [](float a, float b) { return std::max(a, b); });
}
// A sum, whatever coll_hetcoll_user_ops says.
HETCOLL_EXPORTED void project_half_prod(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold<Half>(in, inout, count, add);
}
HETCOLL_EXPORTED void unknown_half_sum(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold<Half>(in, inout, count, add);
}

// Since the last time.
HETCOLL_EXPORTED long user_function_calls() { return calls.exchange(0); }
}
