// The host build of the operations. The loop is simpler than the kernels': a CPU loads from any
// address, and the compiler vectorises it.

// Vector code whatever -O the user chose; results do not depend on it. (g++ does not vectorise a
// choice between two floats as long as either could trap.)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math")
#endif

#include "base/float_control.h"
#include "cuda_kernels/floats.cuh"
#include "cuda_kernels/operations.h"
#include "cuda_kernels/reduction.h"
#include "cuda_kernels/reduction_list.h"

#include <algorithm>
#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace hetcoll {
namespace {

// Integers are reduced under any control register. Floats once more, under the default one, if it
// is not in force: so it costs a small sum five instructions.
template <class T> bool may_reduce() { return std::is_integral_v<T> || DefaultFloats::are_set(); }

[[gnu::cold, gnu::noinline]] void reduce_again(HostReduce reduce, void *dst, const void *a,
                                               const void *b, std::size_t count)
{
    const DefaultFloats control;
    reduce(dst, a, b, count);
}

template <class Op, class T>
HETCOLL_HD void reduce_loop(void *dst, const void *a, const void *b, std::size_t count)
{
    auto *to = static_cast<unsigned char *>(dst);
    const auto *left = static_cast<const unsigned char *>(a);
    const auto *right = static_cast<const unsigned char *>(b);
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#elif defined(__GNUC__)
#pragma GCC ivdep // dst is a, is b, or overlaps neither
#endif
    for (std::size_t i = 0; i < count; ++i) {
        T x, y;
        std::memcpy(&x, left + i * sizeof(T), sizeof x);
        std::memcpy(&y, right + i * sizeof(T), sizeof y);
        const T result = combine<Op>(x, y);
        std::memcpy(to + i * sizeof(T), &result, sizeof result);
    }
}

template <class Op, class T>
void reduce_baseline(void *dst, const void *a, const void *b, std::size_t count)
{
    if (!may_reduce<T>()) [[unlikely]] {
        reduce_again(reduce_baseline<Op, T>, dst, a, b, count);
        return;
    }
    reduce_loop<Op, T>(dst, a, b, count);
}

// From element `first` on. Floats of a piece at a time, so that the loops are vectorised.
template <class T> HETCOLL_HD void fold_loop(void *dst, const void *const *inputs,
                                             std::size_t terms, std::size_t first,
                                             std::size_t count)
{
    constexpr std::size_t kPiece = 512;
    float sum[kPiece];
    for (std::size_t at = first; at < count; at += kPiece) {
        const std::size_t now = std::min(kPiece, count - at);
        for (std::size_t k = 0; k < terms; ++k) {
            const auto *from = static_cast<const unsigned char *>(inputs[k]) + at * sizeof(T);
            for (std::size_t i = 0; i < now; ++i) {
                T x;
                std::memcpy(&x, from + i * sizeof(T), sizeof x);
                sum[i] = k == 0 ? widen(x) : sum[i] + widen(x);
            }
        }
        auto *to = static_cast<unsigned char *>(dst) + at * sizeof(T);
        for (std::size_t i = 0; i < now; ++i) {
            T result;
            narrow(sum[i], result);
            std::memcpy(to + i * sizeof(T), &result, sizeof result);
        }
    }
}

template <class T>
void fold_baseline(void *dst, const void *const *inputs, std::size_t terms, std::size_t count)
{
    const DefaultFloats control;
    fold_loop<T>(dst, inputs, terms, 0, count);
}

#if defined(__x86_64__)
// The processor's own conversions, eight at a time. The bits are the same: a canonical NaN stays
// one.
template <class Op> [[gnu::target("avx2,f16c")]] void reduce_half(void *dst, const void *a,
                                                                  const void *b, std::size_t count)
{
    auto *to = static_cast<Half *>(dst);
    const auto *left = static_cast<const Half *>(a), *right = static_cast<const Half *>(b);
    const std::size_t vectors = count / 8;
    for (std::size_t i = 0; i < vectors; ++i) {
        alignas(32) float x[8], y[8];
        const auto *x_half = reinterpret_cast<const __m128i *>(left + 8 * i);
        const auto *y_half = reinterpret_cast<const __m128i *>(right + 8 * i);
        _mm256_store_ps(x, _mm256_cvtph_ps(_mm_loadu_si128(x_half)));
        _mm256_store_ps(y, _mm256_cvtph_ps(_mm_loadu_si128(y_half)));
        for (int k = 0; k < 8; ++k) {
            x[k] = Op::apply(x[k], y[k]);
        }
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to + 8 * i),
                         _mm256_cvtps_ph(_mm256_load_ps(x), _MM_FROUND_TO_NEAREST_INT));
    }
    reduce_loop<Op, Half>(to + 8 * vectors, left + 8 * vectors, right + 8 * vectors, count % 8);
}

template <class Op, class T>
[[gnu::target("avx2")]] void run_avx2(void *dst, const void *a, const void *b, std::size_t count)
{
    if constexpr (std::is_same_v<T, Half>) {
        reduce_half<Op>(dst, a, b, count);
    } else {
        reduce_loop<Op, T>(dst, a, b, count);
    }
}

// Apart, as the other's stack would be aligned for vectors before it looks.
template <class Op, class T>
void reduce_avx2(void *dst, const void *a, const void *b, std::size_t count)
{
    if (!may_reduce<T>()) [[unlikely]] {
        reduce_again(reduce_avx2<Op, T>, dst, a, b, count);
        return;
    }
    run_avx2<Op, T>(dst, a, b, count);
}

[[gnu::target("avx2,f16c")]] inline __m256 eight_halves(const void *from, std::size_t i)
{
    const Half *const eight = static_cast<const Half *>(from) + 8 * i;
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(eight)));
}

[[gnu::target("avx2,f16c")]] void fold_half(void *dst, const void *const *inputs, std::size_t terms,
                                            std::size_t count)
{
    const std::size_t vectors = count / 8;
    for (std::size_t i = 0; i < vectors; ++i) {
        alignas(32) float sum[8];
        __m256 added = eight_halves(inputs[0], i);
        for (std::size_t k = 1; k < terms; ++k) {
            added = _mm256_add_ps(added, eight_halves(inputs[k], i));
        }
        _mm256_store_ps(sum, added);
        for (float &x : sum) {
            x = canonical(x);
        }
        _mm_storeu_si128(reinterpret_cast<__m128i *>(static_cast<Half *>(dst) + 8 * i),
                         _mm256_cvtps_ph(_mm256_load_ps(sum), _MM_FROUND_TO_NEAREST_INT));
    }
    fold_loop<Half>(dst, inputs, terms, 8 * vectors, count);
}

template <class T> [[gnu::target("avx2")]] void fold_avx2(void *dst, const void *const *inputs,
                                                          std::size_t terms, std::size_t count)
{
    const DefaultFloats control;
    if constexpr (std::is_same_v<T, Half>) {
        fold_half(dst, inputs, terms, count);
    } else {
        fold_loop<T>(dst, inputs, terms, 0, count);
    }
}

// Asks the processor itself: the compiler's __builtin_cpu_supports brings a global constructor.
bool ask_for_avx2()
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned kOsxsave = 1u << 27, kF16c = 1u << 29, kAvx2 = 1u << 5;
    constexpr unsigned kXmmAndYmmState = 6;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 ||
        (ecx & (kOsxsave | kF16c)) != (kOsxsave | kF16c)) {
        return false;
    }
    unsigned enabled = 0, enabled_high = 0;
    __asm__("xgetbv" : "=a"(enabled), "=d"(enabled_high) : "c"(0));
    return (enabled & kXmmAndYmmState) == kXmmAndYmmState &&
           __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & kAvx2) != 0;
}

bool has_avx2()
{
    static const bool has = ask_for_avx2(); // cpuid is slow in a virtual machine
    return has;
}
#else
template <class Op, class T> inline constexpr HostReduce reduce_avx2 = nullptr;
template <class T> inline constexpr HostFold fold_avx2 = nullptr;
bool has_avx2() { return false; }
#endif

template <class Function> struct Code {
    Function baseline, avx2;
    [[nodiscard]] Function best() const { return has_avx2() ? avx2 : baseline; }
};
// [operation][kind]; nullptr where there is none.
template <class Function> using Table =
    std::array<std::array<Code<Function>, kElementKindCount>, kReduceOpCount>;

constexpr Table<HostReduce> make_table()
{
    Table<HostReduce> table{};
#define HETCOLL_HOST_REDUCE(Op, op, Kind, kind)                                          \
    table[static_cast<int>(ReduceOp::k##Op)][static_cast<int>(ElementKind::k##Kind)] = { \
        reduce_baseline<Op, element::Kind>, reduce_avx2<Op, element::Kind>};
    HETCOLL_FOR_EACH_REDUCTION(HETCOLL_HOST_REDUCE)
#undef HETCOLL_HOST_REDUCE
    return table;
}

constexpr Table<HostFold> make_folds()
{
    Table<HostFold> table{};
#define HETCOLL_HOST_FOLD(Op, op, Kind, kind)                                            \
    table[static_cast<int>(ReduceOp::k##Op)][static_cast<int>(ElementKind::k##Kind)] = { \
        fold_baseline<element::Kind>, fold_avx2<element::Kind>};
    HETCOLL_FOR_EACH_FOLD_ALONE(HETCOLL_HOST_FOLD)
#undef HETCOLL_HOST_FOLD
    return table;
}

constexpr Table<HostReduce> kTable = make_table();
constexpr Table<HostFold> kFolds = make_folds();

const Code<HostReduce> &code_of(ReduceOp op, ElementKind kind)
{
    return kTable[static_cast<int>(by_element(op))][static_cast<int>(code_kind(op, kind))];
}

const Code<HostFold> &fold_code_of(ReduceOp op, ElementKind kind)
{
    return kFolds[static_cast<int>(op)][static_cast<int>(kind)];
}

} // namespace

HostReduce host_reduce(ReduceOp op, ElementKind kind) noexcept
{
    return is_defined(op, kind) ? code_of(op, kind).best() : nullptr;
}

HostReduce host_reduce_baseline(ReduceOp op, ElementKind kind) noexcept
{
    return is_defined(op, kind) ? code_of(op, kind).baseline : nullptr;
}

void convert_floats(FloatConversion conversion, ElementKind kind, void *dst, const void *src,
                    std::size_t count) noexcept
{
    const DefaultFloats control;
    const bool widens = conversion == FloatConversion::kWiden;
#define HETCOLL_CONVERT(Kind, name)                                                               \
    if (kind == ElementKind::k##Kind && widens) {                                                 \
        widen_as_thread(static_cast<float *>(dst), static_cast<const Kind *>(src), count, 0, 1);  \
    } else if (kind == ElementKind::k##Kind) {                                                    \
        narrow_as_thread(static_cast<Kind *>(dst), static_cast<const float *>(src), count, 0, 1); \
    }
    HETCOLL_FOR_EACH_WIDENED(HETCOLL_CONVERT)
#undef HETCOLL_CONVERT
}

HostFold host_fold(ReduceOp op, ElementKind kind) noexcept { return fold_code_of(op, kind).best(); }

HostFold host_fold_baseline(ReduceOp op, ElementKind kind) noexcept
{
    return fold_code_of(op, kind).baseline;
}

HostReduction::HostReduction(ReduceOp op, ElementKind kind) noexcept
    : reduce(host_reduce(op, kind)), fold(host_fold(op, kind))
{
}

} // namespace hetcoll
