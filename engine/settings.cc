#include "engine/settings.h"

#include "cuda_kernels/fixed_point.h"
#include "engine/hetcoll.h"
#include "tuning/choice.h"

#include <string>

namespace hetcoll {

Result<std::uint32_t> parse_algorithm(std::string_view name)
{
    if (name == "auto") {
        return std::uint32_t{0};
    }
    if (const auto algorithm = find_algorithm(name)) {
        return 1 + static_cast<std::uint32_t>(*algorithm);
    }
    return error(Errc::kInvalid,
                 "coll_hetcoll_algorithm '%s' is unknown, write auto, recursive_doubling, "
                 "rabenseifner, ring, one_shot, two_shot, leader, tree, hierarchical, host, "
                 "copy_in, ordered, in_network or weighted",
                 std::string(name.substr(0, 40)).c_str());
}

Status check_chunk_bytes(std::size_t chunk_bytes)
{
    constexpr std::size_t kLeast = 4096, kMost = 64u << 20;
    if (chunk_bytes == 0 || (kLeast <= chunk_bytes && chunk_bytes <= kMost)) {
        return {};
    }
    return error(Errc::kInvalid,
                 "coll_hetcoll_chunk_bytes %zu is out of range, write 0 (choose) or a value from "
                 "%zu to %zu",
                 chunk_bytes, kLeast, kMost);
}

Status check_fixed_point(int bits)
{
    if (0 <= bits && bits <= kMostFixedPointBits) {
        return {};
    }
    return error(Errc::kInvalid,
                 "coll_hetcoll_fixed_point %d is out of range, write 0 (off) or 1 to %d bits", bits,
                 kMostFixedPointBits);
}

Status check_aggregators(int window, std::size_t copy_bytes)
{
    constexpr int kMostMessages = 64;
    constexpr std::size_t kLeastCopy = 64u << 10;
    if (window < 1 || window > kMostMessages) {
        return error(Errc::kInvalid,
                     "coll_hetcoll_aggregator_window %d is out of range, write 1 to %d messages",
                     window, kMostMessages);
    }
    if (copy_bytes < kLeastCopy) {
        return error(Errc::kInvalid,
                     "coll_hetcoll_aggregator_copy %zu is too small, write at least %zu bytes",
                     copy_bytes, kLeastCopy);
    }
    return {};
}

Status check_max_memory(std::size_t max_memory)
{
    if (max_memory == 0 || max_memory >= HETCOLL_LEAST_MAX_MEMORY) {
        return {};
    }
    return error(Errc::kInvalid,
                 "coll_hetcoll_max_memory %zu is too small, write at least %u, or 0 for no bound",
                 max_memory, HETCOLL_LEAST_MAX_MEMORY);
}

} // namespace hetcoll
