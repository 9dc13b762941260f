#include "test/seeds/vectors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

namespace hetcoll::test {
namespace {

// Small integers, so that every type has their sums, in any order.
long number_of(const PlannedCall &call, int rank, std::size_t i)
{
    return static_cast<long>((i * 7 + static_cast<std::size_t>(rank) * 13 + call.salt) % 50);
}

long reduced(const PlannedCall &call, int ranks, std::size_t i)
{
    long result = number_of(call, 0, i);
    for (int rank = 1; rank < ranks; ++rank) {
        const long next = number_of(call, rank, i);
        switch (call.type.op) {
        case HETCOLL_SUM: result += next; break;
        case HETCOLL_MAX: result = std::max(result, next); break;
        case HETCOLL_MIN: result = std::min(result, next); break;
        default: result ^= next; break;
        }
    }
    return result;
}

// So small that a register may flush it, or not; sums are as exact.
template <class Real> Real real_of(const PlannedCall &call, long number)
{
    const auto real = static_cast<Real>(number);
    return call.subnormal ? real * std::numeric_limits<Real>::denorm_min() : real;
}

// The elements from `first` on.
template <class Number> std::vector<std::byte> bytes_of(const PlannedCall &call, std::size_t first,
                                                        std::size_t count, Number number_at)
{
    const Type &type = call.type;
    std::vector<std::byte> bytes(count * type.bytes);
    std::byte *to = bytes.data();
    const auto put = [&to](auto number) {
        std::memcpy(to, &number, sizeof number);
        to += sizeof number;
    };
    for (std::size_t i = first; i < first + count; ++i) {
        const long number = number_at(i);
        switch (type.kind) {
        case HETCOLL_INT32: put(static_cast<std::int32_t>(number)); break;
        case HETCOLL_FLOAT32: put(real_of<float>(call, number)); break;
        case HETCOLL_UINT8: put(static_cast<std::uint8_t>(number)); break;
        case HETCOLL_FLOAT64: put(real_of<double>(call, number)); break;
        default: put(static_cast<std::int64_t>(number)); break;
        }
    }
    return bytes;
}

} // namespace

Vectors vectors_of(const PlannedCall &call, int rank, int ranks)
{
    const std::size_t count = call.count, share = count / static_cast<std::size_t>(ranks);
    const std::size_t first = share * static_cast<std::size_t>(rank);
    const auto own = [&](std::size_t i) { return number_of(call, rank, i); };
    const auto of_root = [&](std::size_t i) { return number_of(call, call.root, i); };
    const auto sum = [&](std::size_t i) { return reduced(call, ranks, i); };
    const auto of_owner = [&](std::size_t i) {
        return number_of(call, static_cast<int>(i / share), i);
    };
    const bool is_root = call.root == rank;

    Vectors made;
    made.bytes = count * call.type.bytes;
    switch (call.collective) {
    case HETCOLL_ALLREDUCE:
        made.input = bytes_of(call, 0, count, own);
        made.expected = bytes_of(call, 0, count, sum);
        break;
    case HETCOLL_BCAST:
        made.input = bytes_of(call, 0, is_root ? count : 0, own);
        made.expected = bytes_of(call, 0, count, of_root);
        break;
    case HETCOLL_REDUCE:
        made.input = bytes_of(call, 0, count, own);
        made.expected = bytes_of(call, 0, is_root ? count : 0, sum);
        break;
    case HETCOLL_ALLGATHER:
        made.input = bytes_of(call, first, share, own);
        made.expected = bytes_of(call, 0, count, of_owner);
        made.input_place = first * call.type.bytes;
        break;
    case HETCOLL_REDUCE_SCATTER:
        made.input = bytes_of(call, 0, count, own);
        made.expected = bytes_of(call, first, share, sum);
        break;
    }
    return made;
}

} // namespace hetcoll::test
