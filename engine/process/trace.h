// coll_hetcoll_trace: a file with one JSON object a line, a line a call (docs/observability.md).
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "engine/process/call_record.h"
#include "engine/process/rank_file.h"

#include <memory>
#include <string_view>

namespace hetcoll {

// Thread safe.
class Trace {
public:
    // The file is RankFile's, which describes `pattern` and the error.
    static Result<std::unique_ptr<Trace>> open(std::string_view pattern, int rank, const Log &log);
    Trace(std::unique_ptr<RankFile> file, const Log &log);

    void write(const CallRecord &record) noexcept;

private:
    std::unique_ptr<RankFile> file_;
    Log log_;
    double epoch_s_ = 0; // of now_ns() 0
};

} // namespace hetcoll
