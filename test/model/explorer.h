// Runs a few threads in every way that C++ allows, to prove that nothing goes wrong in any of them.
//
// A run on a real machine shows one order of things. The C++ memory model allows more: a relaxed or
// acquire load may return an older value than the newest, and two cores may see two stores in
// different orders. Only the execution graph of a run matters: the operations of each thread in
// their order, and an arrow from each load to the store whose value it has read ("reads from").
// The model says which graphs are possible (Batty et al., POPL 2011; RC11: Lahav et al., PLDI
// 2017). explore() runs the threads again and again and lets the loads read from other stores each
// time, until it has seen every graph: stateless model checking (Godefroid, POPL 1997; for C++
// CDSChecker: Norris and Demsky, OOPSLA 2013; RCMC and GenMC: Kokologiannakis et al., POPL 2018 and
// PLDI 2019). In each it looks for
//   - data races between plain accesses to memory that was share()d,
//   - threads that wait for what nobody will do any more,
//   - require()ments that are not true.
//
// The code under test is not changed: it is compiled with -fsanitize=thread, which calls a function
// at every access to memory, and linked with ours (compiler_calls.cc) in place of libtsan's.
//
// The explorer leaves out (docs/internals/proofs.md): a load never returns what will be stored
// later in program order (load buffering), and a store is always the newest of its location.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace model {

enum class Mode : std::uint8_t {
    kGraphs, // every execution graph once. Each location has one writer, which is checked
    kStates, // the same, but the continuations of a state are explored one time only, however it
             // was reached
    kInterleavings, // every order of all operations; states that were seen are not entered again
    kRandom,        // random ones, as many as Options::executions: finds mistakes, proves nothing
};

struct Options {
    Mode mode = Mode::kGraphs;
    std::uint64_t executions = UINT64_MAX; // at most
    double seconds = 600;                  // at most
    bool turns = false; // for kGraphs, kStates: there are sequentially consistent loads and stores
    unsigned seed = 1;
    std::function<void()> at_end{}; // after each execution in which all threads have ended
    // That thread ends before its store of that number, counted from 1, whatever it is in, when it
    // has called the function: a process that dies.
    int dies = -1;
    std::uint64_t at_store = 0;
    std::function<void()> dying{};
};

struct Report {
    bool ok = true;                 // nothing wrong was found
    bool complete = false;          // everything was seen: with ok, a proof
    std::string what;               // is wrong. Empty if ok
    std::vector<std::string> trace; // the operations that led to it
    std::uint64_t executions = 0;
    std::uint64_t dropped = 0; // begun and given up: they lead nowhere, or where another one was
    std::uint64_t operations = 0;
    std::uint64_t deaths = 0; // of Options::dies
    double seconds = 0;
};

// Memory whose plain accesses are looked at for races, by a name for traces. Until forget_shares().
void share(const void *address, std::size_t bytes, std::string name);
void forget_shares();

// One function for each thread; at most kMostThreads. They begin with the memory as it is. What
// they change is changed back after each execution, but for their stacks and the heap: they must
// not allocate, and may leave nothing that needs a destructor.
using Threads = std::vector<std::function<void()>>;
inline constexpr int kMostThreads = 6;
[[nodiscard]] Report explore(const Threads &threads, const Options &options = {});

// ---- In a thread ----

// There is nothing to do before something changes that was read since the last wait.
void wait();
// The same, if the last load alone keeps the thread from going on, and is what it will begin with
// again. Costs fewer executions.
void wait_for_last();
// The next wait ends by itself: a stream's copy is over some time, for one.
void go_on();
// Ends the exploration if it is not so.
void require(bool right, const char *what);
// A line of the trace.
void say(const char *what, std::uint64_t value = 0);
[[nodiscard]] int self(); // the thread's number

// As memcpy(), and the explorer sees it.
void copy(void *to, const void *from, std::size_t bytes);

} // namespace model
