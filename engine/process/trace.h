// coll_hetcoll_trace: a file with one JSON object a line, a line a call (docs/observability.md).
#pragma once

#include "base/file_mark.h"
#include "base/log.h"
#include "base/status.h"
#include "engine/process/call_record.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace hetcoll {

// Thread safe. A line is in the file when write() returns, and stays there however the process
// ends. It is one system call: a mapping of the file would cost none, but who cuts the file, as
// logrotate does, would kill the job.
class Trace {
public:
    // `pattern` is a path in which %r is the rank and %p the process id; without either ".RANK" is
    // added. What was in the file is lost. It is this user's and has no other name, so that nobody
    // can make hetcoll empty another file. The error names the file.
    static Result<std::unique_ptr<Trace>> open(std::string_view pattern, int rank, const Log &log);
    ~Trace();
    Trace(const Trace &) = delete;
    Trace &operator=(const Trace &) = delete;

    void write(const CallRecord &record) noexcept;

    [[nodiscard]] static std::string expand(std::string_view pattern, int rank);

private:
    Trace(std::string path, int file, const Log &log);
    void end(int why, std::size_t part_bytes) noexcept;

    std::string path_;
    int file_;
    FileMark mark_;
    Log log_;
    double epoch_s_ = 0; // of now_ns() 0
    std::mutex mutex_;   // of all below
    std::size_t written_ = 0;
    bool has_ended_ = false;
};

} // namespace hetcoll
