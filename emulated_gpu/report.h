// Messages on stderr, and the two reports at exit: counters (EMU_STATS) and leaks (EMU_LEAKS).
#pragma once

#include <cstdint>
#include <string>

namespace hetcoll::emulated_gpu {

// One line on stderr, with who says it. Allocates nothing: fit for a signal handler.
[[gnu::format(printf, 1, 2)]] void say(const char *format, ...);

// Makes say() silent from now on: another library of this process says the same.
void say_nothing();

[[nodiscard]] std::uint64_t now_ns();

// A file named by environment variable `file_variable` (%p in it is the process id) gets `text`
// appended in one write; stderr gets it if asked to.
void publish(bool to_stderr, const char *file_variable, const std::string &text);

} // namespace hetcoll::emulated_gpu
