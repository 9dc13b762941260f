#include "engine/process/trace.h"

#include "base/element.h"
#include "base/own_user.h"
#include "engine/meeting/flags.h"
#include "schedule/algorithm_rows.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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

std::string Trace::expand(std::string_view pattern, int rank)
{
    std::string path;
    bool unique = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char next = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
        if (next == 'r' || next == 'p') {
            path += std::to_string(next == 'r' ? rank : static_cast<int>(getpid()));
            unique = true;
        } else if (next == '%') {
            path += '%';
        } else {
            path += pattern[i];
            continue;
        }
        ++i;
    }
    return unique ? path : path + "." + std::to_string(rank);
}

Result<std::unique_ptr<Trace>> Trace::open(std::string_view pattern, int rank, const Log &log)
{
    std::string path = expand(pattern, rank);
    const auto problem = [&path](const char *why) {
        return error(Errc::kInvalid, "coll_hetcoll_trace: %s cannot be written (%s)", path.c_str(),
                     why);
    };
    // Appends, so that a file that is cut while the job runs has no hole. Never waits for a pipe.
    const int file = ::open(
        path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (file < 0) {
        return problem(errno == ELOOP ? "it is a symbolic link" : std::strerror(errno));
    }
    std::unique_ptr<Trace> trace(new Trace(path, file, log));
    struct stat status {};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        return problem("it is not a file");
    }
    if (!is_own_user(status.st_uid)) {
        return problem("it is another user's file");
    }
    if (status.st_nlink != 1) {
        return problem("it has another name too");
    }
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return problem("another process writes it: put %p into the name");
    }
    if (ftruncate(file, 0) != 0) {
        return problem(std::strerror(errno));
    }
    return trace;
}

Trace::Trace(std::string path, int file, const Log &log)
    : path_(std::move(path)), file_(file), mark_(file), log_(log)
{
    using namespace std::chrono;
    epoch_s_ = duration<double>(system_clock::now().time_since_epoch()).count() -
               static_cast<double>(now_ns()) * 1e-9;
}

Trace::~Trace() { mark_.close(file_); }

void Trace::write(const CallRecord &record) noexcept
{
    char line[kLongestLine];
    const double time_s = epoch_s_ + static_cast<double>(record.start_ns) * 1e-9;
    const auto length = static_cast<std::size_t>(print_line(line, sizeof line, record, time_s));
    const std::lock_guard lock(mutex_);
    if (has_ended_) {
        return;
    }
    ssize_t put;
    do {               // Linux appends whatever the offset says
        errno = EBADF; // if the program has closed it, and opened a file of its own perhaps
        put = mark_.fits(file_) ? pwrite(file_, line, length, 0) : -1;
    } while (put < 0 && errno == EINTR);
    if (put == static_cast<ssize_t>(length)) {
        written_ += length;
    } else {
        end(put < 0 ? errno : ENOSPC, put < 0 ? 0 : static_cast<std::size_t>(put));
    }
}

// After a line of which the file has only the first `part_bytes`.
void Trace::end(int why, std::size_t part_bytes) noexcept
{
    has_ended_ = true;
    struct stat status {};
    const bool cut =
        part_bytes == 0 || (fstat(file_, &status) == 0 &&
                            ftruncate(file_, status.st_size - static_cast<off_t>(part_bytes)) == 0);
    hetcoll::log(
        log_, 0,
        "hetcoll: the trace %s ends after %zu bytes%s, the calls after that are not in it: "
        "%s",
        path_.c_str(), written_, cut ? "" : " and a part of a line", std::strerror(why));
}

} // namespace hetcoll
