#include "engine/process/trace.h"

#include "base/element.h"
#include "engine/meeting/flags.h"
#include "tuning/choice.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

namespace hetcoll {
namespace {

constexpr std::size_t kWindowBytes = std::size_t{1} << 20; // a multiple of every page size
constexpr std::size_t kLongestLine = 512;

constexpr const char *kPaths[] = {"bounce", "direct", "mapped", "mixed", "small", "staged", "host"};

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
        memory_name(record.memory), algorithm_of(record),
        kPaths[static_cast<std::size_t>(path_of(record))], record.chunk_bytes, record.ns);
    const auto add = [&](const char *format, const char *value) {
        length +=
            std::snprintf(line + length, bytes - static_cast<std::size_t>(length), format, value);
    };
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
           : record.served == HETCOLL_CALLS_SMALL  ? CallPath::kSmall
           : record.mapped && messages             ? CallPath::kMixed
           : record.mapped                         ? CallPath::kMapped
           : record.direct                         ? CallPath::kDirect
                                                   : CallPath::kBounce;
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
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) {
        return problem(std::strerror(errno));
    }
    std::unique_ptr<Trace> trace(new Trace(path, file, log));
    struct stat status {};
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        return problem("it is not a file");
    }
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        trace->written_ = static_cast<std::size_t>(status.st_size);
        return problem("another process writes it: put %p into the name");
    }
    if (ftruncate(file, 0) != 0) {
        return problem(std::strerror(errno));
    }
    if (Status moved = trace->move_window(); !moved.ok()) {
        return problem(moved.message().c_str());
    }
    return trace;
}

Trace::Trace(std::string path, int file, const Log &log)
    : path_(std::move(path)), file_(file), log_(log)
{
    using namespace std::chrono;
    epoch_s_ = duration<double>(system_clock::now().time_since_epoch()).count() -
               static_cast<double>(now_ns()) * 1e-9;
}

Trace::~Trace()
{
    close_window();
    ::close(file_);
}

// Cuts off what is behind the last line: blocks are reserved ahead of the lines.
void Trace::close_window() noexcept
{
    if (window_ != nullptr) {
        munmap(window_, kWindowBytes);
        window_ = nullptr;
        if (ftruncate(file_, static_cast<off_t>(written_)) != 0) {
            hetcoll::log(log_, 0, "hetcoll: the trace %s ends in zero bytes: it cannot be cut (%s)",
                         path_.c_str(), std::strerror(errno));
        }
    }
}

// Reserves the blocks first: a write to a mapping that the disk has no room for is a signal.
Status Trace::move_window()
{
    constexpr std::size_t kPages = 64u << 10;
    const std::size_t first = written_ / kPages * kPages;
    const int reserved =
        posix_fallocate(file_, static_cast<off_t>(first), static_cast<off_t>(kWindowBytes));
    if (reserved != 0) {
        return error(Errc::kUnsupported, "%s", std::strerror(reserved));
    }
    void *const memory = mmap(nullptr, kWindowBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_,
                              static_cast<off_t>(first));
    if (memory == MAP_FAILED) {
        return error(Errc::kUnsupported, "%s", std::strerror(errno));
    }
    if (window_ != nullptr) {
        munmap(window_, kWindowBytes);
    }
    window_ = static_cast<char *>(memory);
    window_first_ = first;
    return {};
}

void Trace::write(const CallRecord &record) noexcept
{
    char line[kLongestLine];
    const double time_s = epoch_s_ + static_cast<double>(record.start_ns) * 1e-9;
    const auto length = static_cast<std::size_t>(print_line(line, sizeof line, record, time_s));
    const std::lock_guard lock(mutex_);
    if (window_ == nullptr) {
        return;
    }
    if (written_ + length > window_first_ + kWindowBytes) {
        if (const Status moved = move_window(); !moved.ok()) {
            hetcoll::log(log_, 0,
                         "hetcoll: the trace %s ends after %zu bytes, the calls after that are not "
                         "in it: %s",
                         path_.c_str(), written_, moved.message().c_str());
            close_window();
            return;
        }
    }
    std::memcpy(window_ + (written_ - window_first_), line, length);
    written_ += length;
}

} // namespace hetcoll
