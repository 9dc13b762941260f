// Sizes as a user writes them.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

inline constexpr std::size_t kLargestSize = std::size_t{1} << 40;

// "4096", "64K", "1M": bytes with K, M, G or T for powers of 1024, up to kLargestSize.
[[nodiscard]] Result<std::size_t> parse_size(const std::string &word);

// "8:64M" (doubling) or "8,24,64K".
[[nodiscard]] Result<std::vector<std::size_t>> parse_sizes(const std::string &text);

} // namespace hetcoll
