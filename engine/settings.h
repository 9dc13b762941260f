// Parameters that a program can also set while it runs: parsed and checked in one place.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hetcoll {

// coll_hetcoll_algorithm as hetcoll_facts has it: 0 for auto, else 1 + enum Algorithm.
[[nodiscard]] Result<std::uint32_t> parse_algorithm(std::string_view name);

// coll_hetcoll_chunk_bytes.
[[nodiscard]] Status check_chunk_bytes(std::size_t chunk_bytes);

// coll_hetcoll_fixed_point; 0: floats are added as floats.
[[nodiscard]] Status check_fixed_point(int bits);

// coll_hetcoll_aggregator_window and coll_hetcoll_aggregator_copy.
[[nodiscard]] Status check_aggregators(int window, std::size_t copy_bytes);

// coll_hetcoll_max_memory; 0: no bound.
[[nodiscard]] Status check_max_memory(std::size_t max_memory);

} // namespace hetcoll
