// Shared by the parts of the explorer: the memory of C++ as threads see it, the threads, and the
// execution that is under way. One for a program, because the compiler's calls bring no context.
#pragma once

#include "explorer.h"

#include <csetjmp>
#include <memory>
#include <random>
#include <ucontext.h>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace model {

// ---- Memory ----
//
// Each atomic location keeps all that was ever stored to it, oldest first: its messages. A thread
// knows for each location which message it has seen, and reads that or any later one.

using Seen = std::vector<std::uint16_t>; // by location

void join(Seen &seen, const Seen &other);
[[nodiscard]] std::uint16_t seen_at(const Seen &seen, std::size_t location);
void see(Seen &seen, std::size_t location, std::uint16_t message);

// The knowledge of a thread, or of a reader of a message: messages, and the plain accesses that
// happened before (clock[i]: those of thread i up to its release number clock[i]).
struct Knowledge {
    Seen seen;
    std::uint32_t clock[kMostThreads] = {};
    void join(const Knowledge &other);
};

struct Message {
    std::uint64_t value;
    Knowledge with; // what an acquire load of it learns
    std::uint64_t id;
    // How often the value had changed. A write that leaves it as it is, to a lock that is held or
    // by who polls and says the same each time, gives nobody a reason to look again.
    std::uint16_t change;
};

struct Location {
    std::uintptr_t address;
    int writer; // -1: none so far
    std::vector<Message> messages;
};

// One byte of shared memory, for races.
struct Cell {
    std::int8_t writer = -1;
    bool atomic = false, touched = false;
    std::uint32_t write_clock = 0;
    std::uint32_t read_clock[kMostThreads] = {};
    const void *write_pc = nullptr;
};
struct Region {
    std::uintptr_t first, end;
    std::string name;
    std::vector<Cell> cells;
};

// ---- Threads ----

enum class Kind : std::uint8_t { kNone, kLoad, kStore, kRmw, kCas, kFence, kWait, kStart, kEnd };
enum class Rmw : std::uint8_t { kExchange, kAdd, kSub, kAnd, kOr, kXor };

// The next step of a thread.
struct Operation {
    Kind kind = Kind::kNone;
    Rmw rmw = Rmw::kExchange;
    std::uintptr_t address = 0;
    int bytes = 0, order = 0; // order: __ATOMIC_RELAXED and so on
    std::uint64_t value = 0, expected = 0;
    const void *pc = nullptr;
};

struct Read {
    std::size_t location;
    std::uint16_t change; // of its message
    friend bool operator==(const Read &, const Read &) = default;
};

inline constexpr std::size_t kStackBytes = 256u << 10;

struct Thread {
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    ucontext_t context;
    jmp_buf jump;
    bool begun = false;
    const char *deepest = nullptr; // of its frames

    Operation next;
    std::uint64_t result = 0;     // of its last operation
    std::uint64_t stores = 0;     // that it has begun
    Knowledge now;                // what it knows
    Knowledge acquired, released; // what its next acquire fence adds; what its last release fence
                                  // gives to later stores
    std::uint64_t history = 0;    // a hash of its operations and what they read

    // The messages that it has read since the last wait, and before that. See begin_wait().
    std::vector<Read> round, last_round;
    bool wrote = false;
    bool waits_for_last = false;
    bool waiting = false;
    bool went_on = false;     // it wrote before it waited, so it may find more to do
    bool wants_fresh = false; // random executions: seen the same twice, it reads the newest
    int later_than = -1;      // its load shall read this message, which is not there yet
};

// ---- The execution under way ----

struct Undo { // of plain writes to up to eight bytes
    std::uintptr_t address;
    std::uint8_t old[8];
    bool written[8]; // the others are not ours
};

struct Choice {
    std::uint32_t taken, of;
};

struct Event { // for the trace
    int thread;
    Operation operation;
    std::uint64_t value;
    bool stale; // a load that has not read the newest
    std::string text;
};

struct State {
    bool exploring = false;
    Thread *running = nullptr; // null: the explorer itself
    int running_index = -1;
    jmp_buf explorer;
    std::vector<std::unique_ptr<Thread>> threads;
    const Threads *bodies = nullptr;

    std::vector<Location> locations;
    std::unordered_map<std::uintptr_t, std::size_t> location_at;
    Seen seen_by_all; // by sequentially consistent operations, which have one order
    std::uint64_t order_of_all = 0;
    std::vector<Region> regions;
    std::vector<Cell *> touched;
    std::vector<Undo> undo;
    std::unordered_map<std::uintptr_t, std::size_t> undo_at; // by address

    std::vector<Choice> path; // to this execution
    std::size_t depth = 0;
    std::unordered_set<std::uint64_t> known; // states
    std::mt19937_64 random;
    std::vector<Event> events;

    Options options;
    Report *report = nullptr;
    bool failed = false;
};
extern State state;

// The code of the explorer's own, called from a thread, is not looked at.
class Aside {
public:
    Aside() : thread_(std::exchange(state.running, nullptr)) {}
    ~Aside() { state.running = thread_; }
    Aside(const Aside &) = delete;
    Aside &operator=(const Aside &) = delete;

private:
    Thread *thread_;
};
[[nodiscard]] inline bool is_watched() { return state.exploring && state.running != nullptr; }

[[nodiscard]] std::uint64_t mix(std::uint64_t a, std::uint64_t b); // a hash of both

// Loads alone branch, and a variable with one writer is written immediately.
[[nodiscard]] inline bool follows_graphs()
{
    return state.options.mode == Mode::kGraphs || state.options.mode == Mode::kStates;
}

// memory.cc
[[nodiscard]] std::size_t location_of(std::uintptr_t address, int bytes);
[[nodiscard]] std::size_t newest(std::size_t location);
// The oldest message that the thread's load may return.
[[nodiscard]] std::size_t oldest_readable(const Thread &thread, std::size_t location);
// Does what the thread waits to do. A load reads the given message.
void perform(int index, std::size_t message);

// plain_memory.cc
void plain_access(std::uintptr_t address, std::size_t bytes, bool writes, const void *pc);
[[nodiscard]] Region *region_of(std::uintptr_t address);
void touch(Cell &cell);
void roll_back();

// stacks.cc
void resume(int index);                    // runs a thread until it says its next operation
std::uint64_t announce(const Operation &); // in a thread: does it when it is chosen
[[noreturn]] void leave_thread();
void may_die(); // in a thread, before a store: Options::dies

// known_states.cc
[[nodiscard]] bool is_new_state();

// search.cc
[[nodiscard]] bool is_turn(const Operation &op); // of Options::turns
enum class End : std::uint8_t { kDone, kDropped };
[[nodiscard]] End run_graph();
[[nodiscard]] End run_interleaving();

// trace.cc
[[nodiscard]] std::string name_of(std::uintptr_t address);
[[nodiscard]] std::string line_of(const void *pc);
void violation(const std::string &what);
[[noreturn]] void violation_in_thread(const std::string &what);

} // namespace model
