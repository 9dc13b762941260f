// What hetcoll decides about one call, from facts that are the same on every rank.
#pragma once

#include "base/element.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hetcoll {

enum class Algorithm : std::uint8_t { kRecursiveDoubling, kRabenseifner, kRing };
inline constexpr int kAlgorithmCount = static_cast<int>(Algorithm::kRing) + 1;

// "recursive_doubling", "rabenseifner", "ring".
[[nodiscard]] const char *algorithm_name(Algorithm algorithm) noexcept;
[[nodiscard]] std::optional<Algorithm> find_algorithm(std::string_view name) noexcept;

// Most bytes in one message under the built-in rules: the size of a bounce slot.
inline constexpr std::size_t kLargestChunkBytes = 512u << 10;

struct Query {
    std::size_t bytes; // of the whole vector
    int ranks;
    std::optional<Algorithm> forced; // coll_hetcoll_algorithm
    std::size_t chunk_bytes;         // coll_hetcoll_chunk_bytes; 0: choose
};

struct Choice {
    Algorithm algorithm;
    std::size_t chunk_bytes; // most bytes in one message; a multiple of 16: whole elements
};

// The built-in rules. They use bytes and ranks only; a measured table takes their place when
// hetcoll is tuned for a machine.
[[nodiscard]] Choice choose(const Query &query) noexcept;

} // namespace hetcoll
