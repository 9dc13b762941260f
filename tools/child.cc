#include "tools/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hetcoll {

namespace {

// mpirun ends its ranks on SIGTERM, which takes it a moment.
constexpr std::chrono::milliseconds kGrace{2500};

volatile std::sig_atomic_t caught_signal = 0;
void note_signal(int number) { caught_signal = number; }

class CatchSignals {
public:
    CatchSignals()
    {
        struct sigaction action = {};
        action.sa_handler = note_signal;
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            sigaction(kSignals[i], &action, &before_[i]);
        }
    }
    ~CatchSignals()
    {
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            sigaction(kSignals[i], &before_[i], nullptr);
        }
    }
    CatchSignals(const CatchSignals &) = delete;
    CatchSignals &operator=(const CatchSignals &) = delete;

private:
    static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, kSignals.size()> before_{};
};

[[noreturn]] void become(const ChildCommand &command, int output, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM); // also if we are killed
    if (getppid() != parent) {
        _exit(127);
    }
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(output, 1);
    dup2(output, 2);
    for (const auto &[name, value] : command.environment) {
        setenv(name.c_str(), value.c_str(), 1);
    }
    std::vector<char *> arguments;
    for (const std::string &argument : command.arguments) {
        arguments.push_back(const_cast<char *>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    std::fprintf(stderr, "%s cannot be started (%s)\n", arguments[0], std::strerror(errno));
    std::fflush(stderr);
    _exit(127);
}

// Cuts what has come so far into lines.
void hand_on(std::string &text, const std::function<void(const std::string &)> &line)
{
    std::size_t first = 0;
    for (std::size_t end; (end = text.find('\n', first)) != std::string::npos; first = end + 1) {
        line(text.substr(first, end - first));
    }
    text.erase(0, first);
}

// Milliseconds until then, as poll() takes them, but often enough to see a signal.
int wait_ms(Clock::time_point until)
{
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 200));
}

// Reads until the child closes its output, or must be ended.
void read_all(int input, const ChildCommand &command, ChildEnd &end,
              const std::function<void(const std::string &)> &line)
{
    std::string text;
    std::array<char, 4096> part{};
    const auto slow = Clock::now() + kSlow;
    bool was_slow = !command.on_slow;
    while (true) {
        if (!was_slow && Clock::now() >= slow) {
            was_slow = true;
            command.on_slow();
        }
        end.signal = caught_signal;
        end.timed_out = Clock::now() >= command.deadline;
        if (end.signal != 0 || end.timed_out) {
            return;
        }
        pollfd ready{input, POLLIN, 0};
        if (poll(&ready, 1, wait_ms(command.deadline)) <= 0) {
            continue;
        }
        const ssize_t bytes = read(input, part.data(), part.size());
        if (bytes <= 0) {
            break;
        }
        text.append(part.data(), static_cast<std::size_t>(bytes));
        hand_on(text, line);
    }
    if (!text.empty()) {
        line(text);
    }
}

// True once the child is gone.
bool wait_until(pid_t child, int &status, Clock::time_point until)
{
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (Clock::now() >= until) {
            return false;
        }
        poll(nullptr, 0, 10);
    }
    return true;
}

} // namespace

ChildEnd run_child(const ChildCommand &command,
                   const std::function<void(const std::string &)> &line)
{
    ChildEnd end;
    std::array<int, 2> ends{};
    std::fflush(nullptr);
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        line(std::string("no pipe (") + std::strerror(errno) + ")");
        end.status = 127 << 8;
        return end;
    }
    caught_signal = 0;
    const CatchSignals catch_signals;
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        become(command, ends[1], parent);
    }
    close(ends[1]);
    if (child < 0) {
        line(std::string("no new process (") + std::strerror(errno) + ")");
        close(ends[0]);
        end.status = 127 << 8;
        return end;
    }
    setpgid(child, child); // whoever comes first
    read_all(ends[0], command, end, line);
    close(ends[0]);
    const bool stop = end.timed_out || end.signal != 0;
    if (stop) {
        kill(-child, SIGTERM);
    }
    // A child that has closed its output and stays is ended too.
    if (!wait_until(child, end.status, Clock::now() + kGrace)) {
        end.timed_out = end.timed_out || !stop;
        kill(-child, SIGKILL);
        wait_until(child, end.status, Clock::now() + kGrace);
    }
    kill(-child, SIGKILL); // what it left behind
    return end;
}

} // namespace hetcoll
