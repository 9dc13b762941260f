// The output of a run: that it has failed, and why; with --say each step.
#pragma once

namespace hetcoll::test {

void say_everything();
[[nodiscard]] bool says_everything();
// A line, with --say.
[[gnu::format(printf, 1, 2)]] void say(const char *format, ...);
// The run's process ends with that line, without its destructors.
[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char *format, ...);
// The lines that engines have logged since the last call.
void print_log();

} // namespace hetcoll::test
