// Vectors whose sums and maxima over up to eight ranks are exact in every number format, whatever
// the order: rank r holds r + 1 times a digit from 1 to 7, and 36 * 7 = 252 fits into a byte, and
// into the eight bits of bfloat16.
#pragma once

#include "engine/hetcoll.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace hetcoll::test {

// No block of a vector looks like another one, nor like that of another call.
[[nodiscard]] constexpr int digit(std::size_t i, unsigned call) noexcept
{
    const auto mixed = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15u +
                       std::uint64_t{call} * 0xbf58476d1ce4e5b9u;
    return static_cast<int>((mixed >> 40) % 7 + 1);
}

// The bytes of `number` >= 0 as the kind, one of: uint8, int32, int64, float16, bfloat16, float32,
// float64.
inline void put_number(hetcoll_kind kind, int number, unsigned char *to) noexcept
{
    const auto put = [to](auto value) { std::memcpy(to, &value, sizeof value); };
    switch (kind) {
    case HETCOLL_UINT8: put(static_cast<std::uint8_t>(number)); break;
    case HETCOLL_INT32: put(static_cast<std::int32_t>(number)); break;
    case HETCOLL_INT64: put(static_cast<std::int64_t>(number)); break;
    case HETCOLL_FLOAT32: put(static_cast<float>(number)); break;
    case HETCOLL_FLOAT64: put(static_cast<double>(number)); break;
    case HETCOLL_BFLOAT16: {
        const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
        put(static_cast<std::uint16_t>(bits >> 16));
        break;
    }
    case HETCOLL_FLOAT16: {
        const int exponent = std::bit_width(static_cast<unsigned>(number)) - 1;
        const int bits = ((exponent + 15) << 10) + ((number << (10 - exponent)) & 0x3ff);
        put(static_cast<std::uint16_t>(number == 0 ? 0 : bits));
        break;
    }
    default: break;
    }
}

// `factor` times the digits of the call.
[[nodiscard]] inline std::vector<unsigned char> numbers(hetcoll_kind kind, std::size_t count,
                                                        unsigned call, int factor)
{
    const std::size_t bytes = hetcoll_element_bytes(kind);
    unsigned char known[8][8] = {};
    for (int d = 1; d <= 7; ++d) {
        put_number(kind, factor * d, known[d]);
    }
    std::vector<unsigned char> content(count * bytes);
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(&content[i * bytes], known[digit(i, call)], bytes);
    }
    return content;
}
[[nodiscard]] inline std::vector<unsigned char> input_of(int rank, hetcoll_kind kind,
                                                         std::size_t count, unsigned call)
{
    return numbers(kind, count, call, rank + 1);
}
// Requires HETCOLL_SUM or HETCOLL_MAX.
[[nodiscard]] inline std::vector<unsigned char>
result_of(int ranks, hetcoll_kind kind, hetcoll_op op, std::size_t count, unsigned call)
{
    return numbers(kind, count, call, op == HETCOLL_MAX ? ranks : ranks * (ranks + 1) / 2);
}

} // namespace hetcoll::test
