// One execution: which thread goes on, and what its loads read. choose() follows the path that
// explorer.cc wants to see; where it ends, the first branch is taken and the others are kept for
// later.
#include "state.h"

#include <algorithm>
#include <utility>

namespace model {
namespace {

std::uint32_t choose(std::size_t of)
{
    if (of == 1) {
        return 0;
    }
    if (state.options.mode == Mode::kRandom) {
        return static_cast<std::uint32_t>(state.random() % of);
    }
    if (state.depth == state.path.size()) {
        state.path.push_back({0, static_cast<std::uint32_t>(of)});
    }
    return state.path[state.depth++].taken;
}

// ---- Waiting ----
//
// A thread that waits has read some messages since its last wait: its round. It goes on once one of
// them is no longer the newest. If it reads the same round again, nothing has changed for it, and
// whatever it will do it can do without this round too: the execution is dropped.

bool begin_wait(Thread &thread) // false: drop it
{
    const bool same = thread.round == thread.last_round && !thread.wrote;
    thread.last_round = std::exchange(thread.round, {});
    thread.went_on = std::exchange(thread.wrote, false);
    return !same;
}

bool is_old(const Read &read)
{
    return state.locations[read.location].messages.back().change > read.change;
}

bool may_wake(const Thread &thread)
{
    if (thread.waits_for_last) {
        return false; // the branch in which its last load read something else goes on
    }
    return thread.went_on ||
           std::any_of(thread.last_round.begin(), thread.last_round.end(), is_old);
}

// Whether a thread that waits may find something else in another branch.
bool is_hopeful(const Thread &thread)
{
    const std::vector<Read> &reads = thread.last_round;
    if (thread.waits_for_last && !reads.empty()) {
        return is_old(reads.back());
    }
    return std::any_of(reads.begin(), reads.end(), is_old);
}

// Nobody can go on: all threads have ended, or this branch leads nowhere, or they wait forever.
End end_of_execution()
{
    bool all = true, dropped = false;
    std::string stuck;
    for (std::size_t i = 0; i < state.threads.size(); ++i) {
        const Thread &thread = *state.threads[i];
        if (thread.next.kind == Kind::kEnd) {
            continue;
        }
        all = false;
        if (thread.next.kind != Kind::kWait || is_hopeful(thread)) {
            dropped = true; // a load of what has not come, or a wait for what another branch reads
        } else {
            stuck += " " + std::to_string(i);
        }
    }
    if (all) {
        return End::kDone;
    }
    if (!dropped) {
        violation("threads wait forever:" + stuck);
    }
    return End::kDropped;
}

// ---- Every execution graph once ----
//
// Each location has one writer, so its messages come in program order whatever the threads do, and
// a store can be done immediately: who is to read an older message still can. So only loads branch:
// a load reads a message that is there, or it is postponed until there is a newer one, which it
// then reads.

int find_thread(bool (*may_go_on)(Thread &))
{
    for (std::size_t i = 0; i < state.threads.size(); ++i) {
        if (may_go_on(*state.threads[i])) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

// Sequentially consistent operations branch: any of them may be the next.
bool has_a_turn(const Thread &thread) { return is_turn(thread.next); }

bool does_not_load(Thread &thread)
{
    const Kind kind = thread.next.kind;
    return !has_a_turn(thread) && kind != Kind::kNone && kind != Kind::kLoad &&
           kind != Kind::kWait && kind != Kind::kEnd;
}

std::size_t location_of_load(const Thread &thread)
{
    return location_of(thread.next.address, thread.next.bytes);
}

bool can_load(Thread &thread)
{
    return thread.next.kind == Kind::kLoad && !has_a_turn(thread) &&
           thread.later_than <= static_cast<int>(newest(location_of_load(thread)));
}

bool may_be_written_later(std::size_t location, int reader)
{
    if (state.locations[location].writer == reader) {
        return false;
    }
    for (int i = 0; i < static_cast<int>(state.threads.size()); ++i) {
        if (i != reader && state.threads[static_cast<std::size_t>(i)]->next.kind != Kind::kEnd) {
            return true;
        }
    }
    return false;
}

// Where an execution branches for the first time: whether another one has been in the same state.
bool is_known(std::size_t branches)
{
    return state.options.mode == Mode::kStates && branches > 1 &&
           state.depth >= state.path.size() && !is_new_state();
}

constexpr int kPostponed = -1, kBeenThere = -2;

// Returns the message to read. The newest comes first, because it is the one that mostly leads on.
int choose_message(Thread &thread, int index)
{
    const std::size_t at = location_of_load(thread);
    const int oldest = std::max(static_cast<int>(oldest_readable(thread, at)), thread.later_than);
    const int count = static_cast<int>(newest(at)) + 1;
    const int branches = count - oldest + (may_be_written_later(at, index) ? 1 : 0);
    if (is_known(static_cast<std::size_t>(branches))) {
        return kBeenThere;
    }
    const int message = count - 1 - static_cast<int>(choose(static_cast<std::size_t>(branches)));
    thread.later_than = message < oldest ? count : -1;
    return message < oldest ? kPostponed : message;
}

bool starts_to_wait(Thread &thread) { return thread.next.kind == Kind::kWait && !thread.waiting; }
bool wakes(Thread &thread) { return thread.next.kind == Kind::kWait && may_wake(thread); }

struct Branch {
    int thread;
    std::size_t message; // that its load reads
};

// Two executions that have come to the same have the same future. Plain memory is not in it:
// without races it follows from what the threads have read.
std::uint64_t state_now()
{
    std::uint64_t now = state.order_of_all;
    for (const auto &thread : state.threads) {
        now = mix(now, thread->history);
        now = mix(now, static_cast<std::uint64_t>(thread->next.kind));
        now = mix(now, thread->last_round.size());
        now = mix(now, static_cast<std::uint64_t>(thread->later_than));
    }
    for (const Location &location : state.locations) {
        now = mix(now, location.address);
        for (const Message &message : location.messages) {
            now = mix(now, message.id);
        }
    }
    return now;
}

enum class Turn : std::uint8_t { kNone, kTaken, kKnown };

// Nobody else can go on. Loads read here what is there: for something newer their turn comes later.
Turn next_turn()
{
    std::vector<Branch> branches;
    for (int i = 0; i < static_cast<int>(state.threads.size()); ++i) {
        const Thread &thread = *state.threads[static_cast<std::size_t>(i)];
        if (!has_a_turn(thread)) {
            continue;
        }
        if (thread.next.kind == Kind::kStore) {
            branches.push_back({i, 0});
            continue;
        }
        const std::size_t at = location_of_load(thread);
        for (std::size_t message = newest(at) + 1; message-- > oldest_readable(thread, at);) {
            branches.push_back({i, message});
        }
    }
    if (branches.empty()) {
        return Turn::kNone;
    }
    const bool is_first = state.depth >= state.path.size();
    if (state.options.mode == Mode::kStates ? is_known(branches.size())
                                            : is_first && !state.known.insert(state_now()).second) {
        return Turn::kKnown;
    }
    const Branch taken = branches[choose(branches.size())];
    perform(taken.thread, taken.message);
    resume(taken.thread);
    return Turn::kTaken;
}

} // namespace

bool is_turn(const Operation &op)
{
    return state.options.turns && follows_graphs() && op.order == __ATOMIC_SEQ_CST &&
           (op.kind == Kind::kStore || op.kind == Kind::kLoad);
}

End run_graph()
{
    while (!state.failed) {
        int index = find_thread(does_not_load);
        if (index >= 0) {
            perform(index, 0);
            resume(index);
            continue;
        }
        index = find_thread(can_load);
        if (index >= 0) {
            Thread &thread = *state.threads[static_cast<std::size_t>(index)];
            const int message = choose_message(thread, index);
            if (message == kBeenThere) {
                return End::kDropped;
            }
            if (message >= 0) {
                perform(index, static_cast<std::size_t>(message));
                resume(index);
            }
            continue;
        }
        index = find_thread(starts_to_wait);
        if (index >= 0) {
            Thread &thread = *state.threads[static_cast<std::size_t>(index)];
            thread.waiting = true;
            if (!begin_wait(thread)) {
                return End::kDropped;
            }
            continue;
        }
        index = find_thread(wakes);
        if (index < 0) {
            const Turn turn = next_turn();
            if (turn == Turn::kNone) {
                return end_of_execution();
            }
            if (turn == Turn::kKnown) {
                return End::kDropped;
            }
            continue;
        }
        state.threads[static_cast<std::size_t>(index)]->waiting = false;
        resume(index);
    }
    return End::kDone;
}

// ---- Every interleaving ----

namespace {

void add_loads(std::vector<Branch> &branches, int index)
{
    const Thread &thread = *state.threads[static_cast<std::size_t>(index)];
    const std::size_t at = location_of_load(thread);
    const std::size_t oldest = oldest_readable(thread, at);
    for (std::size_t message = newest(at) + 1; message-- > oldest;) {
        branches.push_back({index, message});
        if (thread.wants_fresh) {
            return;
        }
    }
}

// Whether the execution goes on.
bool start_waits()
{
    for (const auto &each : state.threads) {
        Thread &thread = *each;
        if (!starts_to_wait(thread)) {
            continue;
        }
        thread.waiting = true;
        thread.waits_for_last = false; // saves executions only where loads alone branch
        thread.wants_fresh = !begin_wait(thread);
        if (thread.wants_fresh && state.options.mode != Mode::kRandom) {
            return false;
        }
    }
    return true;
}

std::vector<Branch> find_branches()
{
    std::vector<Branch> branches;
    for (int i = 0; i < static_cast<int>(state.threads.size()); ++i) {
        Thread &thread = *state.threads[static_cast<std::size_t>(i)];
        if (thread.next.kind == Kind::kLoad) {
            add_loads(branches, i);
        } else if (does_not_load(thread) || wakes(thread)) {
            branches.push_back({i, 0});
        }
    }
    return branches;
}

} // namespace

End run_interleaving()
{
    while (!state.failed) {
        if (!start_waits()) {
            return End::kDropped;
        }
        const std::vector<Branch> branches = find_branches();
        if (branches.empty()) {
            return end_of_execution();
        }
        const bool is_new = state.depth >= state.path.size();
        const Branch taken = branches[choose(branches.size())];
        Thread &thread = *state.threads[static_cast<std::size_t>(taken.thread)];
        if (thread.next.kind == Kind::kWait) {
            thread.waiting = false;
            thread.history = mix(thread.history, 9);
        } else {
            perform(taken.thread, taken.message);
        }
        resume(taken.thread);
        if (is_new && state.options.mode == Mode::kInterleavings && !state.failed &&
            !state.known.insert(state_now()).second) {
            return End::kDropped;
        }
    }
    return End::kDone;
}

} // namespace model
