#include "test/unit/cuda_kernels_reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

namespace hetcoll::test {
namespace {

template <class T> T load(const void *from)
{
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}
template <class T> void store(void *to, T value) { std::memcpy(to, &value, sizeof value); }

template <class T> constexpr T kNan = 0; // every bit set but the sign
template <> constexpr float kNan<float> = std::bit_cast<float>(0x7fffffffu);
template <> constexpr double kNan<double> = std::bit_cast<double>(0x7fffffffffffffffu);

// One operation on floating point values, rounded to T once. Products of T fit into Wide, and sums
// are rounded to enough bits that rounding again does no harm.
template <class T> using Wide = std::conditional_t<sizeof(T) == 4, double, __float128>;
template <class T> T add(T a, T b)
{
    const auto sum = static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
    return std::isnan(sum) ? kNan<T> : sum;
}
template <class T> T multiply(T a, T b)
{
    const auto product = static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
    return std::isnan(product) ? kNan<T> : product;
}

template <class T> T real_combine(ReduceOp op, T a, T b)
{
    if (op == ReduceOp::kSum || op == ReduceOp::kSumOnce) {
        return add(a, b);
    }
    if (op == ReduceOp::kProd) {
        return multiply(a, b);
    }
    if (op == ReduceOp::kMaxFirst || op == ReduceOp::kMinFirst) {
        const T kept = op == ReduceOp::kMaxFirst ? std::max(a, b) : std::min(a, b);
        return std::isnan(kept) ? kNan<T> : kept;
    }
    if (std::isnan(a) || std::isnan(b)) {
        return std::isnan(a) && std::isnan(b) ? kNan<T> : std::isnan(a) ? b : a;
    }
    if (a == 0 && b == 0) {
        const bool both = std::signbit(a) && std::signbit(b);
        const bool any = std::signbit(a) || std::signbit(b);
        return std::copysign(T{0}, (op == ReduceOp::kMax ? both : any) ? T{-1} : T{1});
    }
    const bool a_first = a < b;
    return a_first == (op == ReduceOp::kMin) ? a : b;
}

template <class T> T integer_combine(ReduceOp op, T a, T b)
{
    const __int128 x = a, y = b;
    switch (op) {
    case ReduceOp::kMax: return x > y ? a : b;
    case ReduceOp::kMin: return x < y ? a : b;
    case ReduceOp::kSum: return static_cast<T>(x + y);
    case ReduceOp::kProd:
        return static_cast<T>(static_cast<unsigned __int128>(x) *
                              static_cast<unsigned __int128>(y));
    case ReduceOp::kLand: return x && y;
    case ReduceOp::kLor: return x || y;
    case ReduceOp::kLxor: return !x != !y;
    case ReduceOp::kBand: return static_cast<T>(x & y);
    case ReduceOp::kBor: return static_cast<T>(x | y);
    default: return static_cast<T>(x ^ y);
    }
}

// A binary float with `digits` significand bits (the hidden one included) whose smallest positive
// number is 2^`lowest`, in 16 bits.
struct Format {
    int digits, lowest;
};
constexpr Format kHalf{11, -24}, kBfloat16{8, -133};

double decode(Format format, std::uint16_t bits)
{
    const int fraction_bits = format.digits - 1;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const int exponent = (bits & 0x7fff) >> fraction_bits;
    const int largest = 0x7fff >> fraction_bits;
    double value = 0;
    if (exponent == largest) {
        value = fraction != 0 ? kNan<double> : std::numeric_limits<double>::infinity();
    } else if (exponent == 0) {
        value = std::ldexp(fraction, format.lowest);
    } else {
        value = std::ldexp(fraction + (1 << fraction_bits), format.lowest + exponent - 1);
    }
    return bits & 0x8000 ? -value : value;
}

std::uint16_t encode(Format format, double value)
{
    if (std::isnan(value)) {
        return 0x7fff;
    }
    const int fraction_bits = format.digits - 1;
    const int largest = 0x7fff >> fraction_bits;
    const int sign = std::signbit(value) ? 0x8000 : 0;
    if (value == 0) {
        return static_cast<std::uint16_t>(sign);
    }
    int exponent = 0;
    std::frexp(value, &exponent);
    const int unit = std::max(exponent - format.digits, format.lowest);
    const double units = std::nearbyint(std::ldexp(std::fabs(value), -unit));
    // Counting up the encodings: a carry out of the significand lands in the exponent.
    const double code = units + std::ldexp(unit - format.lowest, fraction_bits);
    const int infinity = largest << fraction_bits;
    return static_cast<std::uint16_t>(sign |
                                      (code >= infinity ? infinity : static_cast<int>(code)));
}

std::uint16_t small_float_combine(Format format, ReduceOp op, std::uint16_t a, std::uint16_t b)
{
    const auto x = static_cast<float>(decode(format, a)), y = static_cast<float>(decode(format, b));
    return encode(format, real_combine(op, x, y));
}

// 8-bit floats by the tables of their specification: with `bias`, and no number above `largest`.
struct Format8 {
    int fraction_bits, bias, largest;
    bool has_infinity;
};
constexpr Format8 kE4m3{3, 7, 0x7e, false}, kE5m2{2, 15, 0x7b, true};

float decode(Format8 format, std::uint8_t bits)
{
    const int code = bits & 0x7f, fraction = code & ((1 << format.fraction_bits) - 1);
    const int exponent = code >> format.fraction_bits;
    const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
    if (code > format.largest) {
        return code == format.largest + 1 && format.has_infinity
                   ? sign * std::numeric_limits<float>::infinity()
                   : kNan<float>;
    }
    const int hidden = exponent == 0 ? 0 : 1 << format.fraction_bits;
    return sign * std::ldexp(static_cast<float>(hidden + fraction),
                             std::max(exponent, 1) - format.bias - format.fraction_bits);
}

const std::array<double, 128> &numbers_of(const Format8 &format)
{
    const auto all = [](const Format8 &of) {
        std::array<double, 128> numbers{};
        for (std::size_t code = 0; code < numbers.size(); ++code) {
            numbers[code] = static_cast<double>(decode(of, static_cast<std::uint8_t>(code)));
        }
        return numbers;
    };
    static const std::array<double, 128> e4m3 = all(kE4m3), e5m2 = all(kE5m2);
    return format.has_infinity ? e5m2 : e4m3;
}

// The nearest of all numbers, of two that are as near the even one.
std::uint8_t encode(Format8 format, float value)
{
    if (std::isnan(value)) {
        return 0x7f;
    }
    const double wanted = std::fabs(static_cast<double>(value));
    int best = 0;
    double least = wanted;
    for (int code = 1; code <= format.largest; ++code) {
        const double distance =
            std::fabs(numbers_of(format)[static_cast<std::size_t>(code)] - wanted);
        if (std::isinf(value) || distance < least || (distance == least && code % 2 == 0)) {
            best = code;
            least = distance;
        }
    }
    return static_cast<std::uint8_t>(best | (std::signbit(value) ? 0x80 : 0));
}

template <const Format8 &kFormat> void float8(ReduceOp op, void *dst, const void *a, const void *b)
{
    const auto left = load<std::uint8_t>(a), right = load<std::uint8_t>(b);
    const float x = decode(kFormat, left), y = decode(kFormat, right);
    const float result = real_combine(op, x, y);
    if (op == ReduceOp::kSum || op == ReduceOp::kSumOnce || std::isnan(result)) {
        return store(dst, encode(kFormat, result));
    }
    store(dst,
          std::bit_cast<std::uint32_t>(result) == std::bit_cast<std::uint32_t>(x) ? left : right);
}

template <class V, class I>
void located_combine(ReduceOp op, void *dst, const void *a, const void *b)
{
    struct Pair {
        V value;
        I index;
    };
    const auto x = load<Pair>(a), y = load<Pair>(b);
    if constexpr (std::is_floating_point_v<V>) {
        if (std::isnan(x.value) != std::isnan(y.value)) {
            return store(dst, std::isnan(x.value) ? y : x);
        }
        if (std::isnan(x.value)) {
            return store(dst, x.index <= y.index ? x : y);
        }
    }
    if (x.value == y.value) {
        return store(dst, x.index <= y.index ? x : y);
    }
    store(dst, (x.value > y.value) == (op == ReduceOp::kMaxloc) ? x : y);
}

template <class T> void real(ReduceOp op, void *dst, const void *a, const void *b)
{
    store(dst, real_combine(op, load<T>(a), load<T>(b)));
}
template <class T> void integer(ReduceOp op, void *dst, const void *a, const void *b)
{
    store(dst, integer_combine(op, load<T>(a), load<T>(b)));
}
template <class T> void complex(ReduceOp op, void *dst, const void *a, const void *b)
{
    struct Number {
        T re, im;
    };
    const auto x = load<Number>(a), y = load<Number>(b);
    if (op == ReduceOp::kSum) {
        return store(dst, Number{add(x.re, y.re), add(x.im, y.im)});
    }
    store(dst, Number{add(multiply(x.re, y.re), -multiply(x.im, y.im)),
                      add(multiply(x.re, y.im), multiply(x.im, y.re))});
}
template <const Format &kFormat>
void small_float(ReduceOp op, void *dst, const void *a, const void *b)
{
    store(dst, small_float_combine(kFormat, op, load<std::uint16_t>(a), load<std::uint16_t>(b)));
}

struct KindFacts {
    void (*combine)(ReduceOp, void *dst, const void *a, const void *b);
    std::size_t first_bytes, second_at, second_bytes; // what is not padding
    enum { kAnyBits, kFloatFirst, kDoubleFirst, kFloats, kDoubles, kSmallFloat, kTiny } content;
};

using I16 = std::int16_t;
using I32 = std::int32_t;
using I64 = std::int64_t;

constexpr KindFacts kFacts[kElementKindCount] = {
    {integer<std::int8_t>, 1, 0, 0, KindFacts::kAnyBits},
    {integer<std::uint8_t>, 1, 0, 0, KindFacts::kAnyBits},
    {integer<I16>, 2, 0, 0, KindFacts::kAnyBits},
    {integer<std::uint16_t>, 2, 0, 0, KindFacts::kAnyBits},
    {integer<I32>, 4, 0, 0, KindFacts::kAnyBits},
    {integer<std::uint32_t>, 4, 0, 0, KindFacts::kAnyBits},
    {integer<I64>, 8, 0, 0, KindFacts::kAnyBits},
    {integer<std::uint64_t>, 8, 0, 0, KindFacts::kAnyBits},
    {small_float<kHalf>, 2, 0, 0, KindFacts::kSmallFloat},
    {small_float<kBfloat16>, 2, 0, 0, KindFacts::kSmallFloat},
    {real<float>, 4, 0, 0, KindFacts::kFloats},
    {real<double>, 8, 0, 0, KindFacts::kDoubles},
    {complex<float>, 8, 0, 0, KindFacts::kFloats},
    {complex<double>, 16, 0, 0, KindFacts::kDoubles},
    {integer<std::uint8_t>, 1, 0, 0, KindFacts::kAnyBits},
    {integer<std::uint8_t>, 1, 0, 0, KindFacts::kAnyBits},
    {located_combine<I16, I32>, 2, 4, 4, KindFacts::kAnyBits},
    {located_combine<I32, I32>, 4, 4, 4, KindFacts::kAnyBits},
    {located_combine<I64, I32>, 8, 8, 4, KindFacts::kAnyBits},
    {located_combine<float, I32>, 4, 4, 4, KindFacts::kFloatFirst},
    {located_combine<double, I32>, 8, 8, 4, KindFacts::kDoubleFirst},
    {located_combine<float, float>, 4, 4, 4, KindFacts::kFloats},
    {located_combine<double, double>, 8, 8, 8, KindFacts::kDoubles},
    {float8<kE4m3>, 1, 0, 0, KindFacts::kTiny},
    {float8<kE5m2>, 1, 0, 0, KindFacts::kTiny},
};

const KindFacts &facts(ElementKind kind) { return kFacts[static_cast<int>(kind)]; }

template <class Float, class Bits> Bits special_bits(std::mt19937_64 &random)
{
    using Limits = std::numeric_limits<Float>;
    const Float values[] = {0,
                            1,
                            2,
                            Limits::infinity(),
                            Limits::max(),
                            Limits::min(),
                            Limits::denorm_min(),
                            Limits::min() / 2,
                            Limits::quiet_NaN(),
                            Limits::signaling_NaN(),
                            1 + Limits::epsilon(),
                            Float(0.1)};
    Bits bits = load<Bits>(&values[random() % std::size(values)]);
    return bits ^ (random() % 2 ? Bits{1} << (8 * sizeof(Bits) - 1) : 0);
}

template <class Float, class Bits> void fill(unsigned char *to, std::mt19937_64 &random)
{
    const unsigned choice = random() % 8;
    if (choice < 3) {
        store(to, special_bits<Float, Bits>(random));
    } else if (choice < 4) {
        store(to, static_cast<Bits>(random())); // any exponent
    } else {
        const double number = std::uniform_real_distribution<double>(-100, 100)(random);
        store(to, static_cast<Float>(number));
    }
}

float small_number(ElementKind kind, const unsigned char *from)
{
    switch (kind) {
    case ElementKind::kFloat8E4m3: return decode(kE4m3, *from);
    case ElementKind::kFloat8E5m2: return decode(kE5m2, *from);
    case ElementKind::kFloat16: return static_cast<float>(decode(kHalf, load<std::uint16_t>(from)));
    default: return static_cast<float>(decode(kBfloat16, load<std::uint16_t>(from)));
    }
}

void store_small_number(ElementKind kind, unsigned char *to, float value)
{
    switch (kind) {
    case ElementKind::kFloat8E4m3: return store(to, encode(kE4m3, value));
    case ElementKind::kFloat8E5m2: return store(to, encode(kE5m2, value));
    case ElementKind::kFloat16: return store(to, encode(kHalf, value));
    default: return store(to, encode(kBfloat16, value));
    }
}

} // namespace

void reference_combine(ReduceOp op, ElementKind kind, void *dst, const void *a, const void *b)
{
    facts(kind).combine(op, dst, a, b);
}

Bytes reference_fold(ReduceOp op, ElementKind kind, const std::vector<Bytes> &inputs)
{
    Bytes result = inputs[0];
    const std::size_t bytes = element_bytes(kind);
    if (op == ReduceOp::kSumOnce) {
        for (std::size_t at = 0; at < result.size(); at += bytes) {
            float sum = small_number(kind, &inputs[0][at]);
            for (std::size_t k = 1; k < inputs.size(); ++k) {
                sum = add(sum, small_number(kind, &inputs[k][at]));
            }
            store_small_number(kind, &result[at], sum);
        }
        return result;
    }
    for (std::size_t k = 1; k < inputs.size(); ++k) {
        for (std::size_t at = 0; at < result.size(); at += bytes) {
            reference_combine(op, kind, &result[at], &result[at], &inputs[k][at]);
        }
    }
    return result;
}

long first_difference(ElementKind kind, const Bytes &a, const Bytes &b)
{
    const KindFacts &fact = facts(kind);
    const std::size_t bytes = element_bytes(kind);
    for (std::size_t at = 0; at < a.size(); at += bytes) {
        if (std::memcmp(&a[at], &b[at], fact.first_bytes) != 0 ||
            (fact.second_bytes != 0 && std::memcmp(&a[at + fact.second_at], &b[at + fact.second_at],
                                                   fact.second_bytes) != 0)) {
            return static_cast<long>(at / bytes);
        }
    }
    return -1;
}

std::string show_element(ElementKind kind, const Bytes &bytes, long i)
{
    std::string text;
    for (std::size_t k = element_bytes(kind); k-- > 0;) {
        char hex[3];
        std::snprintf(hex, sizeof hex, "%02x",
                      bytes[static_cast<std::size_t>(i) * element_bytes(kind) + k]);
        text += hex;
    }
    return text;
}

Bytes random_elements(ElementKind kind, std::size_t count, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    const KindFacts &fact = facts(kind);
    const std::size_t bytes = element_bytes(kind);
    Bytes result(count * bytes);
    for (unsigned char &byte : result) {
        const unsigned few = random() % 4; // zeros and equal values are frequent
        byte = static_cast<unsigned char>(few == 0 ? random() : few == 1 ? 1 : few == 2 ? 0xff : 0);
    }
    for (std::size_t at = 0; at < result.size(); at += bytes) {
        switch (fact.content) {
        case KindFacts::kFloats:
        case KindFacts::kFloatFirst:
            for (std::size_t k = 0; k < (fact.content == KindFacts::kFloats ? bytes : 4); k += 4) {
                fill<float, std::uint32_t>(&result[at + k], random);
            }
            break;
        case KindFacts::kDoubles:
        case KindFacts::kDoubleFirst:
            for (std::size_t k = 0; k < (fact.content == KindFacts::kDoubles ? bytes : 8); k += 8) {
                fill<double, std::uint64_t>(&result[at + k], random);
            }
            break;
        case KindFacts::kSmallFloat:
            store(&result[at], static_cast<std::uint16_t>(random() >> 20));
            break;
        case KindFacts::kTiny: result[at] = static_cast<unsigned char>(random() >> 20); break;
        default: break;
        }
    }
    return result;
}

std::vector<std::pair<ReduceOp, ElementKind>> defined_reductions()
{
    std::vector<std::pair<ReduceOp, ElementKind>> all;
    for (int op = 0; op < kReduceOpCount; ++op) {
        for (int kind = 0; kind < kElementKindCount; ++kind) {
            if (is_defined(static_cast<ReduceOp>(op), static_cast<ElementKind>(kind))) {
                all.emplace_back(static_cast<ReduceOp>(op), static_cast<ElementKind>(kind));
            }
        }
    }
    return all;
}

} // namespace hetcoll::test
