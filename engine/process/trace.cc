#include "engine/process/trace.h"

#include "base/element.h"
#include "engine/meeting/flags.h"
#include "schedule/algorithm_rows.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace hetcoll {
namespace {

constexpr std::size_t kLongestLine = 512;

const char *memory_name(Flags memory)
{
    const bool device = any(memory, kDeviceMemory), host = any(memory, kHostMemory);
    return device && host ? "mixed" : device ? "device" : "host";
}

const char *reason_name(int reason)
{
    switch (static_cast<hetcoll_staged_reason>(reason)) {
    case HETCOLL_REASON_NONE: break;
    case HETCOLL_REASON_USER_OP: return "user_op";
    case HETCOLL_REASON_TYPE: return "type";
    case HETCOLL_REASON_LAYOUT: return "layout";
    case HETCOLL_REASON_GPU: return "gpu";
    case HETCOLL_REASON_OTHER_RANK: return "other_rank";
    case HETCOLL_REASON_COLLECTIVE: return "collective";
    }
    return "none";
}

int print_line(char *line, std::size_t bytes, const CallRecord &record, double time_s)
{
    const char *kind =
        record.kind < 0 ? "other" : element_name(static_cast<ElementKind>(record.kind));
    const char *op = record.op < 0 ? "other" : op_name(static_cast<ReduceOp>(record.op));
    int length = std::snprintf(
        line, bytes,
        "{\"time\":%.6f,\"rank\":%d,\"comm\":%" PRIu32 ",\"ranks\":%d,\"call\":\"%s\","
        "\"bytes\":%zu,\"kind\":\"%s\",\"op\":\"%s\",\"memory\":\"%s\",\"algorithm\":\"%s\","
        "\"path\":\"%s\",\"chunk_bytes\":%zu,\"ns\":%" PRIu64,
        time_s, record.rank, record.comm_id, record.comm_size, record.call, record.bytes, kind, op,
        memory_name(record.memory), algorithm_of(record), path_name(path_of(record)),
        record.chunk_bytes, record.ns);
    const auto add = [&](const char *format, const char *value) {
        length +=
            std::snprintf(line + length, bytes - static_cast<std::size_t>(length), format, value);
    };
    if (record.tag != nullptr) {
        add(",\"tag\":\"%s\"", record.tag);
    }
    if (record.staged_reason != HETCOLL_REASON_NONE) {
        add(",\"staged\":\"%s\"", reason_name(record.staged_reason));
    }
    add("%s}\n", record.failed ? ",\"failed\":true" : "");
    return length;
}

} // namespace

CallPath path_of(const CallRecord &record) noexcept
{
    const bool messages = record.bounced || record.direct;
    return record.served == HETCOLL_CALLS_PREVIOUS ? CallPath::kHost
           : record.served == HETCOLL_CALLS_STAGED ? CallPath::kStaged
           : record.by_cpu                         ? CallPath::kCpu
           : record.served == HETCOLL_CALLS_HOST   ? CallPath::kSmall
           : record.mapped && messages             ? CallPath::kMixed
           : record.mapped                         ? CallPath::kMapped
           : record.direct                         ? CallPath::kDirect
                                                   : CallPath::kBounce;
}

const char *path_name(CallPath path) noexcept
{
    constexpr const char *kNames[] = {"bounce", "direct", "mapped", "mixed",
                                      "small",  "cpu",    "staged", "host"};
    return kNames[static_cast<std::size_t>(path)];
}

const char *algorithm_of(const CallRecord &record) noexcept
{
    if (record.served < 0) {
        return record.schedule != nullptr ? record.schedule : "none";
    }
    if (record.served < HETCOLL_CALLS_OF(0)) {
        return "open_mpi";
    }
    return algorithm_name(static_cast<Algorithm>(record.served - HETCOLL_CALLS_OF(0)));
}

Result<std::unique_ptr<Trace>> Trace::open(std::string_view pattern, int rank, const Log &log)
{
    Result<std::unique_ptr<RankFile>> file = RankFile::open("coll_hetcoll_trace", pattern, rank);
    if (!file.ok()) {
        return file.take_status();
    }
    if (const std::string sign = RankFile::unknown_sign(pattern); rank == 0 && !sign.empty()) {
        hetcoll::log(log, 0,
                     "coll_hetcoll_trace: %s stays in the name %s: %%r is the rank, %%p the "
                     "process id, %%%% a percent sign",
                     sign.c_str(), (*file)->path().c_str());
    }
    return std::make_unique<Trace>(std::move(*file), log);
}

Trace::Trace(std::unique_ptr<RankFile> file, const Log &log) : file_(std::move(file)), log_(log)
{
    using namespace std::chrono;
    epoch_s_ = duration<double>(system_clock::now().time_since_epoch()).count() -
               static_cast<double>(now_ns()) * 1e-9;
}

void Trace::write(const CallRecord &record) noexcept
{
    char line[kLongestLine];
    const double time_s = epoch_s_ + static_cast<double>(record.start_ns) * 1e-9;
    const auto length = static_cast<std::size_t>(print_line(line, sizeof line, record, time_s));
    file_->append({line, length}, [this](int why) {
        hetcoll::log(log_, 0,
                     "hetcoll: the trace %s ends after %zu bytes%s, the calls after that are not "
                     "in it: %s",
                     file_->path().c_str(), file_->bytes(),
                     file_->has_part() ? " and a part of a line" : "", std::strerror(why));
    });
}

} // namespace hetcoll
