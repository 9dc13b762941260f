// A file that one rank writes line by line: of coll_hetcoll_trace, of coll_hetcoll_verbose_file.
#pragma once

#include "base/file_mark.h"
#include "base/status.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace hetcoll {

// Thread safe. A line is in the file when append() returns, and stays there however the process
// ends. It is one system call: a mapping of the file would cost none, but who cuts the file, as
// logrotate does, would kill the job.
class RankFile {
public:
    // `pattern` is a path in which %r is the rank and %p the process id; without either ".RANK" is
    // added. The file's old content is lost. The file is this user's and has no other name, so
    // that nobody can make hetcoll empty another file. The error names `parameter` and the file.
    static Result<std::unique_ptr<RankFile>> open(const char *parameter, std::string_view pattern,
                                                  int rank);
    [[nodiscard]] static std::string expand(std::string_view pattern, int rank);
    // "%q", if the pattern has a sign that stands for nothing.
    [[nodiscard]] static std::string unknown_sign(std::string_view pattern);
    ~RankFile();
    RankFile(const RankFile &) = delete;
    RankFile &operator=(const RankFile &) = delete;

    // Returns whether `line` is in the file. The first line that cannot be written ends the file:
    // `fail` is called once, with the error number.
    template <class Fail> bool append(std::string_view line, const Fail &fail) noexcept
    {
        const std::lock_guard lock(mutex_);
        if (!has_ended_) {
            const int why = put(line);
            has_ended_ = why != 0;
            if (has_ended_) {
                fail(why);
            }
        }
        return !has_ended_;
    }

    [[nodiscard]] const std::string &path() const noexcept { return path_; }
    // The bytes of whole lines; ask from `fail`.
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    // A part of the line that failed is left in the file; ask from `fail`.
    [[nodiscard]] bool has_part() const noexcept { return has_part_; }

private:
    RankFile(std::string path, int file) : path_(std::move(path)), file_(file), mark_(file) {}
    int put(std::string_view line) noexcept;

    std::string path_;
    int file_;
    FileMark mark_;
    std::mutex mutex_; // of all below
    std::size_t bytes_ = 0;
    bool has_part_ = false, has_ended_ = false;
};

} // namespace hetcoll
