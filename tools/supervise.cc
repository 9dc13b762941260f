#include "tools/supervise.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <initializer_list>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hetcoll {
namespace {

constexpr int kCannotStart = 1; // exit code
constexpr timespec kPause{.tv_sec = 1, .tv_nsec = 0};

bool asks_to_end(int signal) { return signal == SIGTERM || signal == SIGINT; }

// Passes signals on until the child has ended; waitpid's status. `ended`: it was asked to end.
int follow(pid_t child, const sigset_t &signals, bool &ended)
{
    while (true) {
        const int signal = sigwaitinfo(&signals, nullptr);
        int status = 0;
        if (signal == SIGCHLD && waitpid(child, &status, WNOHANG) == child) {
            return status;
        }
        if (signal > 0 && signal != SIGCHLD) {
            ended = ended || asks_to_end(signal);
            (void)kill(child, signal);
        }
    }
}

// Waits a moment, and whether somebody asks to end meanwhile.
bool pause_unless_ended(const sigset_t &signals)
{
    int signal = SIGCHLD;
    while (signal == SIGCHLD || signal == SIGUSR1) {
        signal = sigtimedwait(&signals, nullptr, &kPause);
    }
    return asks_to_end(signal);
}

} // namespace

int supervise(int (*serve)(void *context), void *context, LineOutput &log)
{
    sigset_t signals, before;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) {
        sigaddset(&signals, signal);
    }
    (void)sigprocmask(SIG_BLOCK, &signals, &before); // cannot fail with these arguments
    for (bool ended = false;;) {
        const pid_t supervisor = getpid();
        const pid_t child = fork();
        if (child < 0) {
            log.write(std::string("hetcoll_aggregator: --supervise: fork: ") +
                      std::strerror(errno));
            return kCannotStart;
        }
        if (child == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
            if (getppid() != supervisor) { // it has gone already
                return 0;
            }
            (void)sigprocmask(SIG_SETMASK, &before, nullptr);
            return serve(context);
        }
        const int status = follow(child, signals, ended);
        if (WIFEXITED(status)) {
            return WEXITSTATUS(status);
        }
        log.write(std::string("hetcoll_aggregator: ended by ") + strsignal(WTERMSIG(status)) +
                  (ended ? "" : ", starts again"));
        if (ended || pause_unless_ended(signals)) {
            return 0;
        }
    }
}

} // namespace hetcoll
