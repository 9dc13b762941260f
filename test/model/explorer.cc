#include "explorer.h"

#include "state.h"

#include <ctime>

namespace model {

State state;

namespace {

double seconds_now()
{
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void start_threads()
{
    state.depth = 0;
    for (std::size_t i = 0; i < state.threads.size(); ++i) {
        Thread &thread = *state.threads[i];
        thread.begun = thread.wrote = thread.waits_for_last = thread.waiting = false;
        thread.wants_fresh = thread.went_on = false;
        thread.now = thread.acquired = thread.released = {};
        thread.now.clock[i] = 1;
        thread.history = i + 1;
        thread.stores = 0;
        thread.round.clear();
        thread.last_round.clear();
        thread.later_than = -1;
        thread.next = {};
        thread.next.kind = Kind::kStart;
    }
}

void run_once()
{
    start_threads();
    state.exploring = true;
    const End end = follows_graphs() ? run_graph() : run_interleaving();
    state.exploring = false;
    state.running = nullptr;
    if (end == End::kDone && !state.failed && state.options.at_end) {
        state.options.at_end();
    }
    ++(end == End::kDone ? state.report->executions : state.report->dropped);
    roll_back();
}

// To the next branch that was not taken, depth first. False: there is none.
bool find_next_path()
{
    std::vector<Choice> &path = state.path;
    while (!path.empty() && path.back().taken + 1 == path.back().of) {
        path.pop_back();
    }
    if (path.empty()) {
        return false;
    }
    ++path.back().taken;
    return true;
}

} // namespace

void share(const void *address, std::size_t bytes, std::string name)
{
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    state.regions.push_back({first, first + bytes, std::move(name), std::vector<Cell>(bytes)});
}

void forget_shares() { state.regions.clear(); }

Report explore(const Threads &threads, const Options &options)
{
    Report report;
    state.report = &report;
    state.options = options;
    state.bodies = &threads;
    state.failed = false;
    state.path.clear();
    state.known.clear();
    state.random.seed(options.seed);
    while (state.threads.size() < threads.size()) {
        state.threads.push_back(std::make_unique<Thread>());
    }
    state.threads.resize(threads.size());
    const double start = seconds_now();
    while (true) {
        run_once();
        report.seconds = seconds_now() - start;
        if (state.failed) {
            break;
        }
        if (options.mode != Mode::kRandom && !find_next_path()) {
            report.complete = true;
            break;
        }
        if (report.executions + report.dropped >= options.executions ||
            report.seconds > options.seconds) {
            break;
        }
    }
    state.report = nullptr;
    return report;
}

namespace {

void wait_for(bool last)
{
    if (is_watched()) {
        state.running->waits_for_last = last;
        Operation op;
        op.kind = Kind::kWait;
        announce(op);
    }
}

} // namespace

void wait() { wait_for(false); }
void wait_for_last() { wait_for(true); }

void go_on()
{
    if (is_watched()) {
        state.running->wrote = true;
    }
}

void require(bool right, const char *what)
{
    if (!right && is_watched()) {
        const Aside aside;
        violation_in_thread("not true on thread " + std::to_string(state.running_index) + ": " +
                            what);
    }
}

void say(const char *what, std::uint64_t value)
{
    if (is_watched()) {
        const Aside aside;
        state.events.push_back(
            {state.running_index, {}, 0, false, std::string(what) + " " + std::to_string(value)});
    }
}

int self() { return state.running_index; }

} // namespace model
