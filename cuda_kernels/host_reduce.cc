// The host build of the operations. The loop is simpler than the kernels': a CPU loads from any
// address, and the compiler makes vector code of it.

// Vector code whatever -O the user chose; results do not depend on it.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "fp-contract=off")
#endif

#include "cuda_kernels/operations.h"
#include "cuda_kernels/reduction.h"
#include "cuda_kernels/reduction_list.h"

#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace hetcoll {
namespace {

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
    reduce_loop<Op, T>(dst, a, b, count);
}

#if defined(__x86_64__)
template <class Op, class T>
[[gnu::target("avx2")]] void reduce_avx2(void *dst, const void *a, const void *b,
                                         std::size_t count)
{
    reduce_loop<Op, T>(dst, a, b, count);
}

// Asked of the processor itself: the compiler's __builtin_cpu_supports brings a global constructor.
bool ask_for_avx2()
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    constexpr unsigned kOsxsave = 1u << 27, kAvx2 = 1u << 5, kXmmAndYmmState = 6;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsxsave) == 0) {
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
bool has_avx2() { return false; }
#endif

struct Code {
    HostReduce baseline, avx2;
};
using Table = std::array<std::array<Code, kElementKindCount>, kReduceOpCount>;

constexpr Table make_table()
{
    Table table{};
#define HETCOLL_HOST_REDUCE(Op, op, Kind, kind)                                                    \
    table[static_cast<int>(ReduceOp::k##Op)][static_cast<int>(ElementKind::k##Kind)] = {           \
        reduce_baseline<Op, element::Kind>, reduce_avx2<Op, element::Kind>};
    HETCOLL_FOR_EACH_REDUCTION(HETCOLL_HOST_REDUCE)
#undef HETCOLL_HOST_REDUCE
    return table;
}

constexpr Table kTable = make_table();

} // namespace

HostReduce host_reduce(ReduceOp op, ElementKind kind) noexcept
{
    if (!is_defined(op, kind)) {
        return nullptr;
    }
    const Code &code =
        kTable[static_cast<int>(op)][static_cast<int>(code_kind(op, kind))];
    return has_avx2() ? code.avx2 : code.baseline;
}

} // namespace hetcoll
