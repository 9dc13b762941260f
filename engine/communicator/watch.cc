#include "engine/communicator/watch.h"

#include "transport/node_identity.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <new>

namespace hetcoll {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

[[gnu::format(printf, 1, 2)]] std::string format(const char *text, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, text);
    std::vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    return line;
}

const char *text_of(ProcessState state) noexcept
{
    switch (state) {
    case ProcessState::kRuns: return "runs";
    case ProcessState::kSleeps: return "sleeps";
    case ProcessState::kStopped: return "is stopped";
    case ProcessState::kDied: return "has died";
    case ProcessState::kGone: return "has ended";
    case ProcessState::kUnknown: return "cannot be looked at";
    }
    return "";
}

// Compares ranks whose numbers may have wrapped.
bool has_come(std::uint32_t arrived, std::uint32_t meeting) noexcept
{
    return static_cast<std::int32_t>(arrived - meeting) >= 0;
}

// Among ranks of a node that would say the same: true for the first that asks.
bool says_first(std::atomic<std::uint64_t> &spoken, std::uint32_t number, unsigned times) noexcept
{
    const std::uint64_t mine = std::uint64_t{number} << 8 | times;
    std::uint64_t last = spoken.load(std::memory_order_relaxed);
    while (last < mine) {
        if (spoken.compare_exchange_weak(last, mine)) {
            return true;
        }
    }
    return false;
}

} // namespace

Watch::Watch(const Log &to, NodeGroup &group, std::vector<std::string> host_names, int after_s)
    : log_(to), group_(group), host_names_(std::move(host_names)), patience_(after_s)
{
}

bool Watch::look(Patience &patience, std::uint64_t moves) noexcept
{
    const bool due = patience.look(moves);
    if (patience.after_ns() != 0 && group_.page().exists()) {
        group_.own_slot().looked_ns.store(patience.looked_ns(), std::memory_order_relaxed);
    }
    return due;
}

// The first that asks, of those that wait in one meeting or behind it.
bool Watch::speaks() noexcept
{
    if (!group_.uses_pages() || group_.local_size() == 1) {
        return true;
    }
    return says_first(group_.slot(0).spoken, group_.meetings(), patience_.said());
}

// "rank 2 (process 1234 is stopped)"; of another node "rank 2 (on node17)".
std::string Watch::rank_text(int rank) const
{
    const ProcessIdentity &process = group_.process(rank);
    if (process.host != group_.process(group_.all().rank).host) {
        return format("rank %d (on %s)", rank, host_names_[group_.node_of(rank)].c_str());
    }
    return format("rank %d (process %d %s)", rank, process.pid, text_of(process_state(process)));
}

// Describes a rank that has come to no more meetings than these.
std::string Watch::missing_rank(int local_rank, std::uint32_t arrived) const
{
    const ControlPage::Slot &slot = group_.slot(local_rank);
    const int rank = group_.local_ranks()[local_rank];
    const ProcessIdentity &process = group_.process(rank);
    const unsigned turn = arrived % 2;
    std::string text =
        format("rank %d (process %d %s, ", rank, process.pid, text_of(process_state(process)));
    text += arrived == 0 ? std::string("no call yet")
                         : format("last in call %u, %s", slot.call_number[turn],
                                  describe(slot.call[turn]).text);
    const auto other = group_.handed_on().last_of(local_rank);
    if (other && (arrived == 0 || is_later(other->number(), slot.call[turn].number()))) {
        text += format(", then in %s", describe(*other).text);
    }
    return text + ")";
}

// Those of the node that have not come to the meeting in which this rank is; and how many have.
std::string Watch::missing_ranks(int &there) const
{
    std::string ranks;
    there = 0;
    for (int local = 0; local < group_.local_size(); ++local) {
        const std::uint32_t arrived = group_.slot(local).arrived.load(std::memory_order_acquire);
        if (has_come(arrived, group_.meetings())) {
            ++there;
            continue;
        }
        ranks += (ranks.empty() ? "" : ", ") + missing_rank(local, arrived);
    }
    return ranks;
}

// Those of the node that are not in a call that this rank has handed on, nor have been.
std::string Watch::ranks_elsewhere(const CallSignature &call, int &there) const
{
    std::string missing, differing;
    there = 0;
    for (int local = 0; local < group_.local_size(); ++local) {
        const HandedOn::Place place = group_.handed_on().place_of(local, call);
        if (place.call) {
            const int rank = group_.local_ranks()[local];
            differing += format("%s%s has called %s, in its place", differing.empty() ? "" : ", ",
                                rank_text(rank).c_str(), describe(*place.call).text);
        } else if (!place.has_come) {
            const std::uint32_t arrived =
                group_.slot(local).arrived.load(std::memory_order_acquire);
            missing += (missing.empty() ? "missing " : ", ") + missing_rank(local, arrived);
        } else {
            ++there;
        }
    }
    return missing + (missing.empty() || differing.empty() ? "" : "; ") + differing;
}

// Those that have come, and are stopped, have died, or have not been in an MPI call since.
std::string Watch::ranks_at_rest() const
{
    std::string ranks;
    const std::uint64_t long_ago =
        patience_.looked_ns() - std::max(patience_.after_ns() / 2, kSecond);
    for (int local = 0; local < group_.local_size(); ++local) {
        const int rank = group_.local_ranks()[local];
        if (local == group_.local_rank()) {
            continue;
        }
        const ProcessState state = process_state(group_.process(rank));
        const bool rests = state == ProcessState::kStopped || state == ProcessState::kDied ||
                           state == ProcessState::kGone;
        const bool looks = group_.slot(local).looked_ns.load(std::memory_order_relaxed) > long_ago;
        if (rests || !looks) {
            ranks += format("%srank %d (process %d %s%s)", ranks.empty() ? "" : ", ", rank,
                            group_.process(rank).pid, text_of(state),
                            rests ? "" : ", in no MPI call that waits");
        }
    }
    return ranks;
}

void Watch::say(const std::string &what)
{
    log(log_, 0, "hetcoll: rank %d waits for %.0f s in call number %u on communicator %u, %s: %s",
        group_.all().rank, patience_.seconds(), group_.own_call().count(), group_.all().comm_id,
        describe(group_.own_call().call(), mpi_name_).text, what.c_str());
}

void Watch::say_meeting(const Meeting &meeting) noexcept
{
    try {
        say_missing(meeting);
    } catch (const std::bad_alloc &) { // then it says nothing
    }
}

void Watch::say_missing(const Meeting &meeting)
{
    if (group_.uses_pages() && group_.local_size() > 1) {
        int there = 0;
        const std::string ranks = missing_ranks(there);
        if (!ranks.empty()) {
            if (speaks()) {
                say(format("missing %s; %d of %d ranks of this node are there", ranks.c_str(),
                           there, group_.local_size()));
            }
            return;
        }
        if (!group_.is_leader()) { // who exchanges messages for this node
            const int leader = group_.local_ranks()[0];
            const ProcessState state = process_state(group_.process(leader));
            const bool goes_on = state == ProcessState::kRuns || state == ProcessState::kSleeps ||
                                 state == ProcessState::kUnknown;
            if (!goes_on && speaks()) {
                say("missing " + rank_text(leader) + ", which speaks for this node");
            }
            return;
        }
    }
    say_exchange(meeting.exchange(), group_.uses_pages() ? &group_.leader_ranks() : nullptr);
}

// Rank numbers of an exchange are those of `ranks`; null: the communicator's.
void Watch::say_exchange(const Exchange &exchange, const std::vector<int> *ranks)
{
    const Exchange::Awaited awaited = exchange.awaited();
    if (awaited.peer < 0) {
        return; // who waits for the missing one itself says so
    }
    const auto text = [&](int peer) {
        const int rank = ranks != nullptr ? (*ranks)[peer] : peer;
        const char *const node = ranks != nullptr && group_.nodes() > 1 ? "the node of " : "";
        return node + rank_text(rank);
    };
    std::string line = "missing " + text(awaited.peer);
    if (awaited.or_peer >= 0) {
        line += " or " + text(awaited.or_peer);
    }
    say(line + ", from which there is no message");
}

void Watch::say_first_call() { say_exchange(group_.exchange(), group_.exchange_ranks()); }

void Watch::say_schedule(const Executor &executor)
{
    const Executor::Awaited awaited = executor.awaited();
    if (awaited.peer < 0) {
        return say_own_gpu("a kernel or a copy");
    }
    const bool local = group_.uses_pages() && group_.local_size() > 1;
    if (!speaks()) {
        return;
    }
    const std::string at_rest = local ? ranks_at_rest() : std::string();
    say(format("in step %d of %d, %s %s, %zu of %zu bytes are done%s%s", awaited.step,
               executor.steps(), awaited.sends ? "which sends to" : "which receives from",
               rank_text(awaited.peer).c_str(), awaited.done, awaited.bytes,
               at_rest.empty() ? "" : "; missing ", at_rest.c_str()));
}

// If all ranks of several nodes have come, one node speaks, and others if they are asked to: at
// least one node more says who is missing.
void Watch::say_in_open_mpi(const Patience &patience, const CallSignature &call) noexcept
{
    try {
        int there = 0;
        std::string where = ranks_elsewhere(call, there);
        const bool is_here = !where.empty();
        const bool is_first = group_.node_of(0) == group_.node_of(group_.all().rank);
        const int level = is_here || group_.nodes() == 1 || is_first ? 0 : 1;
        if (!log_.enabled(level) ||
            !says_first(group_.slot(0).spoken_in_open_mpi, call.number(), patience.said())) {
            return;
        }
        log(log_, level,
            "hetcoll: rank %d waits for %.0f s in %s on communicator %u, which Open MPI serves: "
            "%s%s%d of %d ranks of this node have come",
            group_.all().rank, patience.seconds(), describe(call).text, group_.all().comm_id,
            where.c_str(), is_here ? "; " : "", there, group_.local_size());
    } catch (const std::bad_alloc &) { // then it says nothing
    }
}

void Watch::say_own_gpu(const char *what) { say(std::string("for its own GPU, ") + what); }

} // namespace hetcoll
