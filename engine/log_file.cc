// The boundary's file of log lines: the one of coll_hetcoll_verbose_file.
#include "engine/boundary.h"
#include "engine/hetcoll.h"
#include "engine/process/rank_file.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

using hetcoll::RankFile;

struct hetcoll_log_file {
    std::unique_ptr<RankFile> file;
};

hetcoll_log_file *hetcoll_log_file_open(const char *pattern, int rank, char *message,
                                        size_t message_bytes)
{
    const auto open = [=]() -> hetcoll_log_file * {
        auto file = RankFile::open("coll_hetcoll_verbose_file", pattern, rank);
        if (!file.ok()) {
            std::snprintf(message, message_bytes, "%s", file.status().message().c_str());
            return nullptr;
        }
        return new hetcoll_log_file{std::move(*file)};
    };
    return hetcoll::if_memory_lasts(open, [=]() -> hetcoll_log_file * {
        std::snprintf(message, message_bytes, "coll_hetcoll_verbose_file: no host memory");
        return nullptr;
    });
}

int hetcoll_log_file_write(hetcoll_log_file *file, const char *line)
{
    char text[2048];
    const int length = std::snprintf(text, sizeof text, "%s\n", line);
    const std::size_t bytes = std::min(static_cast<std::size_t>(length), sizeof text - 1);
    text[bytes - 1] = '\n'; // also of a line that is cut
    return file->file->append({text, bytes}, [](int) {}) ? 1 : 0;
}

void hetcoll_log_file_close(hetcoll_log_file *file) { delete file; }
