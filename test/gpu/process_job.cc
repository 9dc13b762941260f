#include "process_job.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

[[noreturn]] void run_rank(ProcessNetwork &network, int rank, pid_t parent, int most_seconds,
                           const std::function<Status(NetworkRank &)> &body)
{
    // Whatever happens to the parent or to the other ranks, this process ends.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        std::_Exit(1);
    }
    alarm(static_cast<unsigned>(most_seconds));
    bool good = false;
    {
        NetworkRank self(network, rank);
        const Status status = body(self);
        good = status.ok();
        if (!good) {
            network.set_message(rank, status.message());
        }
    }
    std::exit(good ? 0 : 1);
}

std::string how_it_ended(int status, int most_seconds)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        return "was not done after " + std::to_string(most_seconds) + " s";
    }
    return WIFSIGNALED(status) ? "was ended by signal " + std::to_string(WTERMSIG(status))
                               : "ended with exit status " + std::to_string(WEXITSTATUS(status));
}

// The first end that is no success, of the processes in order of their ends.
Status wait_for_all(const ProcessNetwork &network, std::vector<pid_t> &processes, int most_seconds)
{
    Status first;
    const auto left = [&] {
        return std::any_of(processes.begin(), processes.end(), [](pid_t p) { return p > 0; });
    };
    while (left()) {
        int status = 0;
        const pid_t ended = waitpid(-1, &status, 0);
        const auto known = std::find(processes.begin(), processes.end(), ended);
        if (ended < 0 && errno != EINTR) {
            return error(Errc::kInvalid, "cannot wait for the ranks: %s", std::strerror(errno));
        }
        if (known == processes.end()) {
            continue;
        }
        *known = 0;
        if (status == 0 || !first.ok()) {
            continue;
        }
        const int rank = static_cast<int>(known - processes.begin());
        const std::string message = network.message(rank);
        first = error(Errc::kInvalid, "rank %d of %d %s%s%s", rank, network.size(),
                      how_it_ended(status, most_seconds).c_str(), message.empty() ? "" : ": ",
                      message.c_str());
        for (const pid_t other : processes) {
            if (other > 0) {
                kill(other, SIGKILL);
            }
        }
    }
    return first;
}

void print_log(int level, const char *line)
{
    if (level == 0) {
        std::fprintf(stderr, "%s\n", line);
    }
}

} // namespace

Status run_ranks(int ranks, int most_seconds, const std::function<Status(NetworkRank &)> &body)
{
    auto network = ProcessNetwork::create(ranks);
    if (!network.ok()) {
        return network.take_status();
    }
    std::fflush(nullptr); // or the children write it once more
    const pid_t parent = getpid();
    std::vector<pid_t> processes;
    Status status;
    for (int rank = 0; rank < ranks && status.ok(); ++rank) {
        const pid_t process = fork();
        if (process == 0) {
            run_rank(**network, rank, parent, most_seconds, body);
        }
        if (process < 0) {
            status = error(Errc::kNoMemory, "cannot fork rank %d: %s", rank, std::strerror(errno));
            std::for_each(processes.begin(), processes.end(), [](pid_t p) { kill(p, SIGKILL); });
        } else {
            processes.push_back(process);
        }
    }
    Status ended = wait_for_all(**network, processes, most_seconds);
    return status.ok() ? std::move(ended) : std::move(status);
}

Result<std::unique_ptr<RankCommunicator>> RankCommunicator::create(NetworkRank &rank,
                                                                   const char *algorithm)
{
    hetcoll_settings settings = hetcoll_default_settings();
    settings.algorithm = algorithm;
    settings.tuning_table = "none";
    settings.recognize_ops = false;
    settings.max_memory = 0;
    settings.local_rank = rank.rank();
    settings.log = print_log;
    std::unique_ptr<RankCommunicator> made(new RankCommunicator);
    char problem[512] = "";
    made->process_ = hetcoll_process_create(&settings, problem, sizeof problem);
    hetcoll_facts mine{};
    if (made->process_ != nullptr) {
        hetcoll_process_facts(made->process_, &mine);
    }
    std::vector<hetcoll_facts> all(static_cast<std::size_t>(rank.size()));
    rank.gather(&mine, sizeof mine, all.data());
    if (made->process_ == nullptr) {
        return error(Errc::kInvalid, "%s", problem);
    }
    hetcoll_facts agreed = all[0];
    for (const hetcoll_facts &other : all) {
        hetcoll_facts_merge(&agreed, &other);
    }
    if (agreed.protocol == 0) {
        return error(Errc::kInvalid, "the ranks' facts do not agree on a protocol");
    }
    const hetcoll_p2p p2p = rank.table();
    made->comm_ = hetcoll_comm_create(made->process_, &p2p, &agreed, all.data());
    if (made->comm_ == nullptr) {
        return error(Errc::kNoMemory, "no memory for the communicator");
    }
    return made;
}

RankCommunicator::~RankCommunicator()
{
    if (comm_ != nullptr) {
        hetcoll_comm_destroy(comm_);
    }
    if (process_ != nullptr) {
        hetcoll_process_destroy(process_);
    }
}

Status RankCommunicator::allreduce(const void *send, void *recv, hetcoll_kind kind, hetcoll_op op,
                                   std::size_t count) noexcept
{
    hetcoll_call call{};
    call.send = send;
    call.recv = recv;
    call.kind = kind;
    call.op = op;
    call.count = count;
    call.span = count * hetcoll_element_bytes(kind);
    call.dense = 1;
    call.previous_allreduce = [](void *, const void *, void *) { return -99; }; // nobody is there
    const int code = hetcoll_allreduce(comm_, &call);
    return code == HETCOLL_SUCCESS
               ? Status()
               : error(Errc::kDriver, "hetcoll_allreduce of %zu bytes answers %d", call.span, code);
}

std::uint64_t RankCommunicator::counter(hetcoll_counter counter) const noexcept
{
    return hetcoll_process_counter(process_, counter);
}

} // namespace hetcoll::test
