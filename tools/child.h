// A child process that is ended in time, whatever it does, with all its own processes.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll {

using Clock = std::chrono::steady_clock;

struct ChildCommand {
    std::vector<std::string> arguments;                           // the program first
    std::vector<std::pair<std::string, std::string>> environment; // in addition to ours
    Clock::time_point deadline;
    std::function<void()> on_slow{}; // called when the child has run for kSlow; may be empty
};
inline constexpr std::chrono::seconds kSlow{3};

struct ChildEnd {
    int status = 0; // of waitpid()
    bool timed_out = false;
    int signal = 0; // that told us to end, and so ended the child; 0: none
    [[nodiscard]] bool good() const noexcept { return status == 0 && !timed_out && signal == 0; }
};

// Hands every line of its output and error output to `line`, without the line feed. Meanwhile
// SIGINT, SIGTERM and SIGHUP end the child.
[[nodiscard]] ChildEnd run_child(const ChildCommand &command,
                                 const std::function<void(const std::string &)> &line);

} // namespace hetcoll
