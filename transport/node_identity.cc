#include "transport/node_identity.h"

#include "base/hash.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace hetcoll {
namespace {

// Reads a small file of /proc and ends it with a zero. Returns its length, or -1 with errno set.
// No memory is taken: ranks ask when there may be none.
template <std::size_t Size> ssize_t read_file(const char *path, char (&text)[Size]) noexcept
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return -1;
    }
    const ssize_t length = read(file, text, Size - 1);
    const int code = errno;
    close(file);
    errno = code;
    text[length > 0 ? length : 0] = '\0';
    return length;
}

// The text of the link, as "pid:[4026531836]", or "none" where there is no link: old kernels lack
// some. Whoever cannot look must not take its own namespace for that of others who cannot.
Result<std::string> namespace_name(const char *path)
{
    char name[64];
    const ssize_t length = readlink(path, name, sizeof name);
    if (length < 0 && errno != ENOENT) {
        return error(Errc::kUnsupported,
                     "%s cannot be read (%s): hetcoll shares no memory with other processes", path,
                     std::strerror(errno));
    }
    return length > 0 ? std::string(name, static_cast<std::size_t>(length)) : "none";
}

// The device of /dev/shm, 0 if there is none.
Result<std::uint64_t> shared_memory_device()
{
    struct stat shm {};
    if (stat("/dev/shm", &shm) == 0) {
        return static_cast<std::uint64_t>(shm.st_dev);
    }
    if (errno != ENOENT && errno != ENOTDIR) {
        return error(Errc::kUnsupported,
                     "/dev/shm cannot be looked at (%s): hetcoll shares no memory with other "
                     "processes",
                     std::strerror(errno));
    }
    return std::uint64_t{0};
}

// The system's facts about a process. Without its start time, `problem` says why.
struct Sight {
    ProcessState state = ProcessState::kUnknown;
    std::uint64_t start_time = 0;
    int problem = 0;
};

ProcessState state_of(char letter, int threads) noexcept
{
    switch (letter) {
    case 'R': return ProcessState::kRuns;
    case 'T':
    case 't': return ProcessState::kStopped;
    case 'Z': // the first thread has ended; others may go on
        return threads > 1 ? ProcessState::kUnknown : ProcessState::kDied;
    case 'X': return ProcessState::kDied;
    default: return ProcessState::kSleeps;
    }
}

Sight look_at(std::int32_t pid) noexcept
{
    constexpr int kName = 2, kState = 3, kThreads = 20, kStartTime = 22;
    char path[48], text[1024] = "";
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int problem = read_file(path, text) < 0 ? errno : EINVAL;
    const char *at = std::strrchr(text, ')'); // the program's name may hold anything
    char letter = 0;
    int threads = 0;
    for (int field = kName; field < kStartTime && at != nullptr; ++field) {
        at = std::strchr(at + 1, ' ');
        if (at != nullptr && field + 1 == kState) {
            letter = at[1];
        } else if (at != nullptr && field + 1 == kThreads) {
            threads = std::atoi(at);
        }
    }
    if (at != nullptr) {
        return {state_of(letter, threads), std::strtoull(at, nullptr, 10), 0};
    }
    // /proc hides processes, too (hidepid). kill() tells without it, and needs no descriptor.
    const bool gone = pid <= 0 || (kill(pid, 0) != 0 && errno == ESRCH);
    return {gone ? ProcessState::kGone : ProcessState::kUnknown, 0, problem};
}

const char *look_remedy(int problem)
{
    switch (problem) {
    case ENOENT: // and yet there is such a process
    case EACCES:
    case EPERM: return ": run both as the same user, or mount /proc without hidepid";
    case EMFILE:
    case ENFILE: return ": too many open files, raise ulimit -n";
    default: return "";
    }
}

} // namespace

Result<std::uint64_t> process_start_time(std::int32_t pid)
{
    const Sight sight = look_at(pid);
    if (sight.state == ProcessState::kGone) {
        return error(Errc::kUnsupported,
                     "there is no process %d: it has ended, or runs in another PID namespace", pid);
    }
    if (sight.problem != 0) {
        return error(Errc::kUnsupported,
                     "process %d cannot be looked at in /proc (%s), it may still run%s", pid,
                     std::strerror(sight.problem), look_remedy(sight.problem));
    }
    return sight.start_time;
}

ProcessState process_state(const ProcessIdentity &process) noexcept
{
    const Sight sight = look_at(process.pid);
    const bool is_another = sight.problem == 0 && sight.start_time != process.start_time;
    return is_another ? ProcessState::kGone : sight.state;
}

Status check_alive(const ProcessIdentity &process)
{
    auto start_time = process_start_time(process.pid);
    if (!start_time.ok()) {
        return start_time.take_status();
    }
    if (*start_time != process.start_time) {
        return error(Errc::kInvalid,
                     "process %d is not the one that announced its memory: that one has ended",
                     process.pid);
    }
    return {};
}

Result<NodeIdentity> node_identity(const char *word)
{
    char boot_id[64];
    errno = EINVAL;
    if (read_file("/proc/sys/kernel/random/boot_id", boot_id) <= 0) {
        return error(Errc::kUnsupported,
                     "/proc/sys/kernel/random/boot_id cannot be read (%s): hetcoll shares no "
                     "memory with other processes, mount /proc",
                     std::strerror(errno));
    }
    auto start_time = process_start_time(getpid());
    if (!start_time.ok()) {
        return start_time.take_status();
    }
    auto ipc = namespace_name("/proc/self/ns/ipc");
    auto pid = ipc.ok() ? namespace_name("/proc/self/ns/pid") : ipc.take_status();
    auto shm = pid.ok() ? shared_memory_device() : pid.take_status();
    if (!shm.ok()) {
        return shm.take_status();
    }
    struct utsname names {};
    uname(&names);

    Hash machine;
    machine.add(boot_id);
    Hash host = machine;
    host.add(names.nodename);
    host.add(*ipc);
    host.add(*pid);
    host.add(*shm);
    host.add(word != nullptr ? word : "");
    return NodeIdentity{.process = {.host = host.value(),
                                    .start_time = *start_time,
                                    .pid = getpid(),
                                    .reserved = 0},
                        .machine = machine.value()};
}

} // namespace hetcoll
