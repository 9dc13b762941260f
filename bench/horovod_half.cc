// What Horovod brings to MPI for half: user-defined operations under the symbols that Horovod 0.28
// exports, in a library that is opened while the program runs, as Python opens Horovod's. hetcoll
// knows them by these symbols. Nothing here is Horovod's code; the results are the same.
#include "cuda_kernels/numbers.h"

#include <mpi.h>

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace horovod::common {

namespace {

using hetcoll::Half;

float widen(std::uint16_t bits) { return hetcoll::widen(Half{bits}); }

// To nearest, ties to even; a NaN becomes 0x7fff.
std::uint16_t narrow(float value)
{
    Half half{};
    hetcoll::narrow(value, half);
    return half.bits;
}

template <class Op> void fold(const void *in, void *inout, int count, Op op, int from = 0)
{
    const auto *a = static_cast<const std::uint16_t *>(in);
    auto *b = static_cast<std::uint16_t *>(inout);
    for (int i = from; i < count; ++i) {
        b[i] = narrow(op(widen(b[i]), widen(a[i])));
    }
}

#if defined(__x86_64__)
// As fast as Horovod's own, for times that can be compared. The number of elements done.
__attribute__((target("avx,f16c"))) int sum_by_eight(const void *in, void *inout, int count)
{
    const auto *a = static_cast<const std::uint16_t *>(in);
    auto *b = static_cast<std::uint16_t *>(inout);
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        auto *to = reinterpret_cast<__m128i *>(b + i);
        const auto *from = reinterpret_cast<const __m128i *>(a + i);
        const __m256 sum = _mm256_add_ps(_mm256_cvtph_ps(_mm_loadu_si128(from)),
                                         _mm256_cvtph_ps(_mm_loadu_si128(to)));
        _mm_storeu_si128(to, _mm256_cvtps_ph(sum, 0));
    }
    return i;
}
#endif

} // namespace

#define HETCOLL_EXPORTED __attribute__((visibility("default")))

HETCOLL_EXPORTED void float16_sum(void *in, void *inout, int *count, MPI_Datatype *)
{
    int done = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c")) {
        done = sum_by_eight(in, inout, *count);
    }
#endif
    fold(
        in, inout, *count, [](float a, float b) { return a + b; }, done);
}

HETCOLL_EXPORTED void float16_prod(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold(in, inout, *count, [](float a, float b) { return a * b; });
}

HETCOLL_EXPORTED void float16_min(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold(in, inout, *count, [](float a, float b) { return std::min(a, b); });
}

HETCOLL_EXPORTED void float16_max(void *in, void *inout, int *count, MPI_Datatype *)
{
    fold(in, inout, *count, [](float a, float b) { return std::max(a, b); });
}

} // namespace horovod::common
