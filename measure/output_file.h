// A file that a tool writes at the end of its work, and that it opens before: a path that cannot be
// written is found out before. "-" is stdout. A file that is not written in the end, because the
// work failed, is as it was before.
#pragma once

#include "base/status.h"

#include <cstdio>
#include <memory>
#include <string>

namespace hetcoll {

class OutputFile {
public:
    // An error names the path.
    [[nodiscard]] static Result<OutputFile> open(const std::string &path);
    // All of it is in the file, or the error says why not: a full disk too.
    [[nodiscard]] Status write(const std::string &text);

private:
    struct Close {
        std::string remove{}; // a path; empty: none
        void operator()(std::FILE *file) const noexcept;
    };
    OutputFile(std::string path, std::FILE *file, bool is_new)
        : path_(std::move(path)), file_(file, Close{is_new ? path_ : std::string()})
    {
    }

    std::string path_;
    std::unique_ptr<std::FILE, Close> file_;
};

} // namespace hetcoll
