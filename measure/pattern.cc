#include "measure/pattern.h"

#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace hetcoll {

namespace {

struct Half {
    std::uint16_t bits;
};
struct Bfloat16 {
    std::uint16_t bits;
};
struct Float8E4m3 {
    std::uint8_t bits;
};
struct Float8E5m2 {
    std::uint8_t bits;
};
struct Bool {
    bool value;
};
struct Byte {
    std::uint8_t value;
};
template <class V, class I> struct Pair {
    V value;
    I index;
};
template <class T> struct Tag {
    using Type = T;
};

template <class F> auto visit(ElementKind kind, F &&call)
{
    switch (kind) {
    case ElementKind::kInt8: return call(Tag<std::int8_t>{});
    case ElementKind::kUint8: return call(Tag<std::uint8_t>{});
    case ElementKind::kInt16: return call(Tag<std::int16_t>{});
    case ElementKind::kUint16: return call(Tag<std::uint16_t>{});
    case ElementKind::kInt32: return call(Tag<std::int32_t>{});
    case ElementKind::kUint32: return call(Tag<std::uint32_t>{});
    case ElementKind::kInt64: return call(Tag<std::int64_t>{});
    case ElementKind::kUint64: return call(Tag<std::uint64_t>{});
    case ElementKind::kFloat16: return call(Tag<Half>{});
    case ElementKind::kBfloat16: return call(Tag<Bfloat16>{});
    case ElementKind::kFloat32: return call(Tag<float>{});
    case ElementKind::kFloat64: return call(Tag<double>{});
    case ElementKind::kComplex64: return call(Tag<std::complex<float>>{});
    case ElementKind::kComplex128: return call(Tag<std::complex<double>>{});
    case ElementKind::kBool: return call(Tag<Bool>{});
    case ElementKind::kByte: return call(Tag<Byte>{});
    case ElementKind::kInt16Int32: return call(Tag<Pair<std::int16_t, std::int32_t>>{});
    case ElementKind::kInt32Int32: return call(Tag<Pair<std::int32_t, std::int32_t>>{});
    case ElementKind::kInt64Int32: return call(Tag<Pair<std::int64_t, std::int32_t>>{});
    case ElementKind::kFloat32Int32: return call(Tag<Pair<float, std::int32_t>>{});
    case ElementKind::kFloat64Int32: return call(Tag<Pair<double, std::int32_t>>{});
    case ElementKind::kFloat32x2: return call(Tag<Pair<float, float>>{});
    case ElementKind::kFloat8E4m3: return call(Tag<Float8E4m3>{});
    case ElementKind::kFloat8E5m2: return call(Tag<Float8E5m2>{});
    case ElementKind::kFloat64x2: break;
    }
    return call(Tag<Pair<double, double>>{});
}

// Steele, Lea and Flood's SplitMix64 finaliser: every bit of the input moves every bit of the
// output.
std::uint64_t mix(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

std::uint64_t hash(const Pattern &p, int rank, std::size_t i)
{
    return mix((static_cast<std::uint64_t>(p.seed) << 40) + i * 0x9e3779b97f4a7c15U +
               static_cast<std::uint64_t>(rank + 1) * 0xd1342543de82ef95U);
}

// At most six ranks contribute a 2, so that the product fits into seven bits.
bool doubles(const Pattern &p, int rank, std::size_t i)
{
    return rank < 6 && (hash(p, -1, i) >> rank & 1) != 0;
}

int small(std::uint64_t bits) { return static_cast<int>(bits % 9) - 4; }
double unit(std::uint64_t bits) // in [-1, 1)
{
    return static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-63;
}

// --- Conversion of the 16-bit and 8-bit types, by the host compiler's arithmetic only ---

float widen(Half h)
{
    const int exponent = h.bits >> 10 & 31, fraction = h.bits & 1023;
    const float sign = (h.bits & 0x8000) != 0 ? -1.0F : 1.0F;
    if (exponent == 31) {
        return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                             : sign * std::numeric_limits<float>::infinity();
    }
    return exponent == 0 ? sign * std::ldexp(static_cast<float>(fraction), -24)
                         : sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}
float widen(Bfloat16 b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }
float widen(Float8E5m2 f) { return widen(Half{static_cast<std::uint16_t>(f.bits << 8)}); }
float widen(Float8E4m3 f)
{
    const int exponent = f.bits >> 3 & 15, fraction = f.bits & 7;
    const float sign = (f.bits & 0x80) != 0 ? -1.0F : 1.0F;
    if (exponent == 15 && fraction == 7) {
        return std::numeric_limits<float>::quiet_NaN();
    }
    return exponent == 0 ? sign * std::ldexp(static_cast<float>(fraction), -9)
                         : sign * std::ldexp(static_cast<float>(fraction + 8), exponent - 10);
}
template <std::floating_point T> T widen(T value) { return value; }

template <class T> T narrow(double value);
template <> float narrow<float>(double value) { return static_cast<float>(value); }
template <> double narrow<double>(double value) { return value; }
// Truncating is enough for inputs: any value of the type will do.
template <> Bfloat16 narrow<Bfloat16>(double value)
{
    return {
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16)};
}
template <> Half narrow<Half>(double value)
{
    if (value == 0) {
        return {0};
    }
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent); // in [0.5, 1)
    const unsigned sign = value < 0 ? 0x8000U : 0U;
    if (exponent < -13) {
        return {static_cast<std::uint16_t>(sign)};
    }
    const auto mantissa = static_cast<unsigned>(fraction * 2048) - 1024;
    return {
        static_cast<std::uint16_t>(sign | static_cast<unsigned>(exponent + 14) << 10 | mantissa)};
}

template <> Float8E5m2 narrow<Float8E5m2>(double value)
{
    return {static_cast<std::uint8_t>(narrow<Half>(value).bits >> 8)};
}
template <> Float8E4m3 narrow<Float8E4m3>(double value)
{
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent); // in [0.5, 1)
    const unsigned sign = value < 0 ? 0x80U : 0U;
    if (value == 0 || exponent < -5) {
        return {static_cast<std::uint8_t>(sign)};
    }
    const auto mantissa = static_cast<unsigned>(fraction * 16) - 8;
    return {static_cast<std::uint8_t>(sign | static_cast<unsigned>(exponent + 6) << 3 | mantissa)};
}

template <class T> struct Precision; // unit roundoff and the smallest normal number
template <> struct Precision<Half> {
    static constexpr double kRoundoff = 0x1p-11, kTiny = 0x1p-14;
};
template <> struct Precision<Bfloat16> {
    static constexpr double kRoundoff = 0x1p-8, kTiny = 0x1p-126;
};
template <> struct Precision<Float8E4m3> {
    static constexpr double kRoundoff = 0x1p-4, kTiny = 0x1p-6;
};
template <> struct Precision<Float8E5m2> {
    static constexpr double kRoundoff = 0x1p-3, kTiny = 0x1p-14;
};
template <> struct Precision<float> {
    static constexpr double kRoundoff = 0x1p-24, kTiny = 0x1p-126;
};
template <> struct Precision<double> {
    static constexpr double kRoundoff = 0x1p-53, kTiny = 0x1p-1022;
};
template <class T>
concept Real = requires
{
    Precision<T>::kRoundoff;
};

// --- Integers, bool and byte: exact always ---

template <std::integral T> T input(const Pattern &p, int rank, std::size_t i)
{
    const std::uint64_t bits = hash(p, rank, i);
    const bool exact = p.values == Values::kExact;
    switch (p.op) {
    case ReduceOp::kSum:
        return static_cast<T>(!exact ? static_cast<std::int64_t>(bits)
                                     : small(bits) + (std::is_signed_v<T> ? 0 : 4));
    case ReduceOp::kProd:
        if (!exact) {
            return static_cast<T>(bits | 1);
        }
        return static_cast<T>((doubles(p, rank, i) ? 2 : 1) *
                              (std::is_signed_v<T> && (bits & 1) != 0 ? -1 : 1));
    case ReduceOp::kLand: return static_cast<T>(bits % 8 == 0 ? 0 : 1 + bits % 100);
    case ReduceOp::kLor:
    case ReduceOp::kLxor: return static_cast<T>(bits % 8 != 0 ? 0 : 1 + bits % 100);
    case ReduceOp::kBand: return static_cast<T>(bits | bits >> 32);
    default: return static_cast<T>(bits);
    }
}

template <std::integral T> T fold(ReduceOp op, T a, T b)
{
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (op) {
    case ReduceOp::kMax: return a > b ? a : b;
    case ReduceOp::kMin: return a < b ? a : b;
    case ReduceOp::kSum: return static_cast<T>(x + y);
    case ReduceOp::kProd: return static_cast<T>(x * y);
    case ReduceOp::kLand: return static_cast<T>(a != 0 && b != 0);
    case ReduceOp::kLor: return static_cast<T>(a != 0 || b != 0);
    case ReduceOp::kLxor: return static_cast<T>((a != 0) != (b != 0));
    case ReduceOp::kBand: return static_cast<T>(x & y);
    case ReduceOp::kBor: return static_cast<T>(x | y);
    default: return static_cast<T>(x ^ y);
    }
}

template <class T>
requires std::same_as<T, Bool> Bool input(const Pattern &p, int rank, std::size_t i)
{
    return {input<std::uint8_t>(p, rank, i) != 0};
}
template <class T>
requires std::same_as<T, Byte> Byte input(const Pattern &p, int rank, std::size_t i)
{
    return {input<std::uint8_t>(p, rank, i)};
}
Bool fold(ReduceOp op, Bool a, Bool b)
{
    return {fold<std::uint8_t>(op, a.value ? 1 : 0, b.value ? 1 : 0) != 0};
}
Byte fold(ReduceOp op, Byte a, Byte b) { return {fold<std::uint8_t>(op, a.value, b.value)}; }
bool same(Bool a, Bool b)
{
    std::uint8_t x = 0; // a bool of neither 0 nor 1 must not go unnoticed
    std::memcpy(&x, &a, 1);
    return x == (b.value ? 1 : 0);
}
bool same(Byte a, Byte b) { return a.value == b.value; }
template <std::integral T> bool same(T a, T b) { return a == b; }

// --- Value and index pairs: many ties, so that the lowest index must win ---

template <class P>
requires requires(P pair) { pair.index; }
P input(const Pattern &p, int rank, std::size_t i)
{
    const std::uint64_t bits = hash(p, rank, i);
    P pair{};
    pair.value = static_cast<decltype(pair.value)>(small(bits));
    pair.index = static_cast<decltype(pair.index)>(bits >> 8 & 31);
    return pair;
}
template <class V, class I> Pair<V, I> fold(ReduceOp op, Pair<V, I> a, Pair<V, I> b)
{
    if (a.value == b.value) {
        return a.index < b.index ? a : b;
    }
    return (a.value > b.value) == (op == ReduceOp::kMaxloc) ? a : b;
}
template <class V, class I> bool same(Pair<V, I> a, Pair<V, I> b)
{
    return a.value == b.value && a.index == b.index;
}

// --- Floating point: folded in more precision, compared within the bound ---

struct Bounded {
    std::complex<long double> value;
    long double magnitude; // sum or product of the absolute values
};

template <Real T> T input(const Pattern &p, int rank, std::size_t i)
{
    const std::uint64_t bits = hash(p, rank, i);
    const bool exact = p.values == Values::kExact;
    switch (p.op) {
    case ReduceOp::kSum: // 8-bit floats hold all integers up to 8
        return narrow<T>(!exact ? unit(bits) : sizeof(T) == 1 ? small(bits) / 4 : small(bits));
    case ReduceOp::kProd:
        if (!exact) {
            return narrow<T>((1.25 + unit(bits << 1) * 0.75) * ((bits >> 63) != 0 ? -1 : 1));
        }
        return narrow<T>((doubles(p, rank, i) ? 2 : 1) * ((bits & 1) != 0 ? -1 : 1));
    default: return narrow<T>(static_cast<int>(bits % 255) - 127);
    }
}
template <class C>
requires requires(C z) { z.real(); }
C input(const Pattern &p, int rank, std::size_t i)
{
    using T = typename C::value_type;
    const std::uint64_t bits = hash(p, rank, i), more = mix(bits);
    if (p.values == Values::kRandom) {
        return {static_cast<T>(unit(bits)), static_cast<T>(unit(more))};
    }
    if (p.op == ReduceOp::kSum) {
        return {static_cast<T>(small(bits)), static_cast<T>(small(more))};
    }
    const int size = (doubles(p, rank, i) ? 2 : 1) * ((bits & 1) != 0 ? -1 : 1);
    return (bits & 2) != 0 ? C(static_cast<T>(size), 0) : C(0, static_cast<T>(size));
}
template <Real T> std::complex<long double> exact_value(T x) { return widen(x); }
template <class T> std::complex<long double> exact_value(std::complex<T> z)
{
    return {z.real(), z.imag()};
}

Bounded fold(ReduceOp op, Bounded a, Bounded b)
{
    const auto &x = a.value, &y = b.value;
    switch (op) {
    case ReduceOp::kSum: return {x + y, a.magnitude + b.magnitude};
    case ReduceOp::kProd:
        return {
            {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()},
            a.magnitude * b.magnitude};
    case ReduceOp::kMax: return x.real() > y.real() ? a : b;
    default: return x.real() < y.real() ? a : b;
    }
}

template <class T> struct RealOf {
    using Type = T;
};
template <class T> struct RealOf<std::complex<T>> {
    using Type = T;
};

template <class T> bool is_right(const Pattern &p, int ranks, const Bounded &want, T got)
{
    using P = Precision<typename RealOf<T>::Type>;
    const auto value = exact_value(got);
    const bool rounds = p.op == ReduceOp::kSum || p.op == ReduceOp::kProd;
    const bool too_many = sizeof(T) == 1 && rounds && want.magnitude > 8;
    if ((p.values == Values::kExact && !too_many) || !rounds) {
        return value == want.value;
    }
    // Each of ranks-1 operations rounds once (a complex product: at most four times).
    const long double bound = 4.0L * ranks * P::kRoundoff * want.magnitude + ranks * P::kTiny;
    return std::abs(value.real() - want.value.real()) <= bound &&
           std::abs(value.imag() - want.value.imag()) <= bound;
}

template <class T> bool is_right(const Pattern &p, int ranks, std::size_t i, T got)
{
    if constexpr (requires { exact_value(got); }) {
        if constexpr (std::same_as<T, float>) { // the common case, ten times faster
            if (p.op == ReduceOp::kSum && p.values == Values::kExact) {
                int sum = 0;
                for (int rank = 0; rank < ranks; ++rank) {
                    sum += small(hash(p, rank, i));
                }
                return got == static_cast<float>(sum);
            }
        }
        const auto part = [&](int rank) {
            const auto value = exact_value(input<T>(p, rank, i));
            return Bounded{value, std::abs(value)};
        };
        Bounded want = part(0);
        for (int rank = 1; rank < ranks; ++rank) {
            want = fold(p.op, want, part(rank));
        }
        return is_right(p, ranks, want, got);
    } else {
        T want = input<T>(p, 0, i);
        for (int rank = 1; rank < ranks; ++rank) {
            want = fold(p.op, want, input<T>(p, rank, i));
        }
        // One rank leaves its input as it is: a logical operation normalises only where it runs.
        return same(got, want);
    }
}

constexpr std::array<std::pair<std::string_view, ElementKind>, 8> kAliases = {{
    {"float", ElementKind::kFloat32},
    {"double", ElementKind::kFloat64},
    {"half", ElementKind::kFloat16},
    {"char", ElementKind::kInt8},
    {"int", ElementKind::kInt32},
    {"uint", ElementKind::kUint32},
    {"long", ElementKind::kInt64},
    {"ulong", ElementKind::kUint64},
}};

} // namespace

void fill_input(const Pattern &pattern, int rank, std::size_t count, void *out)
{
    visit(pattern.kind, [&](auto tag) {
        using T = typename decltype(tag)::Type;
        auto *to = static_cast<char *>(out);
        for (std::size_t i = 0; i < count; ++i) {
            const T value = input<T>(pattern, rank, i);
            std::memcpy(to + i * sizeof(T), &value, sizeof(T)); // `out` may be misaligned
        }
    });
}

Mismatch compare_result(const Pattern &pattern, int ranks, std::size_t count, const void *result)
{
    return visit(pattern.kind, [&](auto tag) {
        using T = typename decltype(tag)::Type;
        const auto *from = static_cast<const char *>(result);
        Mismatch mismatch;
        for (std::size_t i = 0; i < count; ++i) {
            T value;
            std::memcpy(&value, from + i * sizeof(T), sizeof(T));
            if (!is_right(pattern, ranks, i, value) && mismatch.wrong++ == 0) {
                mismatch.first = i;
            }
        }
        return mismatch;
    });
}

std::uint64_t checksum(ElementKind kind, std::size_t count, const void *data)
{
    return visit(kind, [&](auto tag) {
        using T = typename decltype(tag)::Type;
        const auto *from = static_cast<const char *>(data);
        std::uint64_t sum = count;
        const auto add = [&sum](const void *bytes, std::size_t size) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes, size);
            sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
            sum ^= sum >> 29;
        };
        for (std::size_t i = 0; i < count; ++i) {
            T value;
            std::memcpy(&value, from + i * sizeof(T), sizeof(T));
            if constexpr (requires { value.index; }) {
                add(&value.value, sizeof value.value);
                add(&value.index, sizeof value.index);
            } else if constexpr (sizeof(T) <= 8) {
                add(&value, sizeof(T));
            } else {
                add(from + i * sizeof(T), 8);
                add(from + i * sizeof(T) + 8, sizeof(T) - 8);
            }
        }
        return sum;
    });
}

std::optional<ElementKind> find_element(std::string_view name) noexcept
{
    for (int i = 0; i < kElementKindCount; ++i) {
        if (name == element_name(static_cast<ElementKind>(i))) {
            return static_cast<ElementKind>(i);
        }
    }
    for (const auto &[alias, kind] : kAliases) {
        if (name == alias) {
            return kind;
        }
    }
    return std::nullopt;
}

std::optional<ReduceOp> find_op(std::string_view name) noexcept
{
    for (int i = 0; i < kMpiOpCount; ++i) {
        if (name == op_name(static_cast<ReduceOp>(i))) {
            return static_cast<ReduceOp>(i);
        }
    }
    return std::nullopt;
}

} // namespace hetcoll
