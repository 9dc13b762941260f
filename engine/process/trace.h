// coll_hetcoll_trace: a file with one JSON object a line, a line a call (docs/observability.md).
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "engine/process/call_record.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace hetcoll {

// Thread safe. Lines go to a mapping of the file, so they are in it at once, without a system call
// each, and stay there however the process ends.
class Trace {
public:
    // `pattern` is a path in which %r is the rank and %p the process id; without either ".RANK" is
    // added. What was in the file is lost. The error names the file.
    static Result<std::unique_ptr<Trace>> open(std::string_view pattern, int rank, const Log &log);
    ~Trace(); // cuts the file where the last line ends
    Trace(const Trace &) = delete;
    Trace &operator=(const Trace &) = delete;

    void write(const CallRecord &record) noexcept;

    [[nodiscard]] static std::string expand(std::string_view pattern, int rank);

private:
    Trace(std::string path, int file, const Log &log);
    [[nodiscard]] Status move_window(); // to where the next line begins
    void close_window() noexcept;

    std::string path_;
    int file_;
    Log log_;
    double epoch_s_ = 0; // of now_ns() 0
    std::mutex mutex_;   // of all below
    std::size_t written_ = 0;
    std::size_t window_first_ = 0;
    char *window_ = nullptr; // null: nothing is written any more
};

} // namespace hetcoll
