// Schedules as text, for tools, logs and error messages.
#pragma once

#include "schedule/schedule.h"

#include <string>

namespace hetcoll {

// "send", "recv", "recv_reduce".
[[nodiscard]] const char *step_kind_name(StepKind kind) noexcept;

// "block 3", "blocks 4-7".
[[nodiscard]] std::string describe(BlockRange blocks);

// "send blocks 4-7 to rank 2", "recv_reduce block 3 from rank 1".
[[nodiscard]] std::string describe(const Step &step);

// A line of totals, then a table with a line for each step; every line ends with a line feed.
[[nodiscard]] std::string print_schedule(const Schedule &schedule);

} // namespace hetcoll
