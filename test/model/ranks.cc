#include "ranks.h"

#include <cstdio>

namespace model {

using namespace hetcoll;

namespace {

// The answers of process_state() in the code under test. None: all processes live.
std::function<bool(const ProcessIdentity &)> has_died;

} // namespace

extern "C" ProcessState model_process_state(const ProcessIdentity &process)
{
    return has_died && has_died(process) ? ProcessState::kDied : ProcessState::kRuns;
}

hetcoll_p2p Network::rank(int number, int size)
{
    rank_[number].network = this;
    rank_[number].number = number;
    return {&rank_[number], number, size, isend, irecv, test, progress, 0, 0, nullptr, nullptr};
}

int Network::isend(void *context, const void *buffer, std::size_t bytes, int peer, int,
                   void **request)
{
    Rank &self = *static_cast<Rank *>(context);
    Mail &mail = self.network->mail_[self.number][peer];
    const std::uint32_t number = mail.to_send++;
    copy(mail.bytes[number % kMessages], buffer, bytes);
    mail.sent.store(number + 1, std::memory_order_release);
    *request = nullptr;
    return 0;
}

int Network::irecv(void *context, void *buffer, std::size_t bytes, int peer, int, void **request)
{
    Rank &self = *static_cast<Rank *>(context);
    Mail &mail = self.network->mail_[peer][self.number];
    Request &made = self.request[self.next_request++ % 2];
    made = {&mail, buffer, bytes, mail.to_receive++};
    *request = &made;
    return 0;
}

int Network::test(void *, void **request)
{
    const Request &made = *static_cast<const Request *>(*request);
    if (made.mail->sent.load(std::memory_order_acquire) <= made.number) {
        return 0;
    }
    copy(made.to, made.mail->bytes[made.number % kMessages], made.bytes);
    *request = nullptr;
    return 1;
}

namespace {

// The whole of a slot is looked at; these parts have names in traces.
void share_slot(ControlPage::Slot &slot, const std::string &name)
{
    share(&slot.arrived, sizeof slot.arrived, name + ".arrived");
    share(slot.said, sizeof slot.said, name + ".said");
    share(&slot.released, sizeof slot.released, name + ".released");
    share(slot.result, sizeof slot.result, name + ".result");
    share(&slot.works, sizeof slot.works, name + ".works");
    share(&slot.left, sizeof slot.left, name + ".left");
    share(slot.progress, sizeof slot.progress, name + ".progress");
    share(slot.payload, sizeof slot.payload, name + ".payload");
    share(slot.sum, sizeof slot.sum, name + ".sum");
    share(&slot, sizeof slot, name);
}

} // namespace

Job::Job(const std::vector<int> &hosts)
{
    const int size = static_cast<int>(hosts.size());
    std::vector<ProcessIdentity> processes;
    for (const int host : hosts) {
        processes.push_back({static_cast<std::uint64_t>(host) + 1, 1, 1, 0});
    }
    for (int rank = 0; rank < size; ++rank) {
        group.push_back(std::make_unique<NodeGroup>(network->rank(rank, size), processes, 0));
        messages.push_back(std::make_unique<Messages>());
    }
    for (bool pending = true; pending;) {
        pending = false;
        for (const auto &one : group) {
            pending = one->make_pages(1) == Progress::kPending || pending;
        }
    }
    forget_shares();
    for (int rank = 0; rank < size; ++rank) {
        if (group[rank]->uses_pages() && group[rank]->local_size() > 1) {
            share_slot(group[rank]->own_slot(), "slot" + std::to_string(rank));
        }
    }
}

void Job::meet(Meeting &meeting, bool last_load)
{
    while (meeting.step() == Progress::kPending) {
        last_load ? wait_for_last() : wait();
    }
}

std::int64_t value(int number, int rank, int i) { return (number + 1) * 1000 * (rank + 1) + i; }

std::int64_t sum_of(int number, int ranks, int i)
{
    std::int64_t sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        sum += value(number, rank, i);
    }
    return sum;
}

Deaths::Deaths(const Job &job)
    : ranks_(std::make_unique<Rank[]>(static_cast<std::size_t>(job.size()))), size_(job.size())
{
    has_died = [this, &job](const ProcessIdentity &process) {
        // All have the same identity here, but for where it lies.
        for (int rank = 0; rank < size_; ++rank) {
            if (&job.group[self()]->process(rank) == &process) {
                return ranks_[rank].dead.load(std::memory_order_acquire) != 0;
            }
        }
        require(false, "a rank of this job");
        return false;
    };
}

void Deaths::die(int rank)
{
    ranks_[rank].dead.store(1, std::memory_order_release);
    tell_all();
}

void Deaths::tell_all()
{
    for (int rank = 0; rank < size_; ++rank) {
        ranks_[rank].told.store(kCode, std::memory_order_relaxed);
    }
}

int Deaths::code_of(void *rank)
{
    return static_cast<Rank *>(rank)->told.load(std::memory_order_relaxed);
}

namespace {

void print(const Report &report)
{
    std::printf("%s: %llu executions, %llu dropped, %llu operations, %.2f s\n",
                !report.ok        ? "refuted"
                : report.complete ? "proved"
                                  : "not refuted, but not all was seen",
                static_cast<unsigned long long>(report.executions),
                static_cast<unsigned long long>(report.dropped),
                static_cast<unsigned long long>(report.operations), report.seconds);
}

::testing::AssertionResult refuted(const Report &report)
{
    ::testing::AssertionResult result = ::testing::AssertionFailure();
    result << "REFUTED: " << report.what;
    for (const std::string &line : report.trace) {
        result << "\n    " << line;
    }
    return result;
}

} // namespace

::testing::AssertionResult proved(const Report &report)
{
    print(report);
    if (!report.ok) {
        return refuted(report);
    }
    if (!report.complete) {
        return ::testing::AssertionFailure()
               << "not all was seen after " << report.executions << " executions";
    }
    return ::testing::AssertionSuccess();
}

::testing::AssertionResult not_refuted(const Report &report)
{
    print(report);
    return report.ok ? ::testing::AssertionSuccess() : refuted(report);
}

} // namespace model
