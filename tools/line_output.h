// Lines for a reader that may be slow, stopped or gone: nobody waits for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hetcoll {

class LineOutput {
public:
    // Writes to the file, pipe, terminal or socket that `fd` is. Other users of it wait as before.
    explicit LineOutput(int fd);
    ~LineOutput();
    LineOutput(const LineOutput &) = delete;
    LineOutput &operator=(const LineOutput &) = delete;

    // `line` has no newline. Drops it if the reader has not made room; the next one that is
    // written tells how many were dropped. Requires that SIGPIPE is ignored.
    void write(std::string_view line);
    [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
    // Why a line was lost that no reader held up, or 0: a full disk.
    [[nodiscard]] int problem() const noexcept { return problem_; }

private:
    [[nodiscard]] bool put(std::string_view text);

    enum class Method : std::uint8_t { kWrite, kSend, kAsk } method_ = Method::kAsk;
    int fd_;
    bool owned_ = false;
    std::string rest_; // of the last line
    std::uint64_t dropped_ = 0, untold_ = 0;
    int problem_ = 0;
};

} // namespace hetcoll
