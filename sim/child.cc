#include "sim/child.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace hetcoll {
namespace {

double seconds_of(const timeval &time)
{
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// False: nothing has come for `most_s` seconds, if that is not 0.
bool comes(int end, double most_s)
{
    pollfd source{.fd = end, .events = POLLIN, .revents = 0};
    const int most_ms = most_s > 0 ? std::max(static_cast<int>(most_s * 1000), 1) : -1;
    int ready = 0;
    while ((ready = poll(&source, 1, most_ms)) < 0 && errno == EINTR) {
    }
    return ready != 0; // read() says what is wrong
}

} // namespace

Result<ChildOutcome> run_in_child(const Platform &platform, const std::vector<SimActor> &actors,
                                  double most_s)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return error(Errc::kNoMemory, "no pipe for a simulation: %s", std::strerror(errno));
    }
    std::fflush(nullptr); // or the child has the unwritten lines too
    const pid_t parent = getpid(), child = fork();
    if (child < 0) {
        const int cause = errno;
        close(ends[0]);
        close(ends[1]);
        return error(Errc::kNoMemory, "no process for a simulation: %s", std::strerror(cause));
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // nobody would read the outcome
        if (getppid() != parent) {
            _exit(1);
        }
        close(ends[0]);
        const SimOutcome outcome = run_simgrid(platform, actors);
        const bool written = write(ends[1], &outcome, sizeof outcome) == sizeof outcome;
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    const bool in_time = comes(ends[0], most_s);
    if (!in_time) {
        kill(child, SIGKILL);
    }
    ChildOutcome result;
    const ssize_t got = read(ends[0], &result.outcome, sizeof result.outcome);
    close(ends[0]);
    int status = 0;
    rusage usage{};
    while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    if (!in_time) {
        return error(Errc::kUnsupported, "the simulation of %zu ranks was not over after %.1f s",
                     actors.size(), most_s);
    }
    if (got != sizeof result.outcome || status != 0) {
        return error(Errc::kNoMemory,
                     "the simulation of %zu ranks ended by %s %d: it needs some 100 KB for each "
                     "rank, take fewer nodes if memory is short",
                     actors.size(), WIFSIGNALED(status) ? "signal" : "status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (!result.outcome.all_ended) {
        return error(Errc::kInvalid,
                     "the simulated ranks wait for each other without end, which is a "
                     "fault of hetcoll_sim: report the command line");
    }
    result.cost.seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
    result.cost.mib = static_cast<double>(usage.ru_maxrss) / 1024;
    return result;
}

} // namespace hetcoll
