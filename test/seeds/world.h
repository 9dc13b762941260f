// All ranks in one process: a Communicator for each rank of each communicator, over messages in
// memory and the emulated driver. Nothing goes on by itself.
#pragma once

#include "engine/call/operation_queue.h"
#include "test/seeds/buffer.h"
#include "test/seeds/plan.h"
#include "test/unit/engine_process.h"
#include "test/unit/memory_network.h"

#include "engine/call/operation.h"
#include "engine/communicator/communicator.h"

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <vector>

namespace hetcoll::test {

// The answer of a message function on a broken communicator.
inline constexpr int kBroken = -75;

// A rank's call, from its start to its end; a persistent request, from its first start on.
struct Running {
    PlannedCall plan;
    std::size_t number = 0; // in the plan
    Buffer *send = nullptr, *recv = nullptr;
    std::vector<std::byte> input;    // of this rank
    std::vector<std::byte> expected; // in recv, from its start
    bool spoiled = false;            // the previous module got other numbers
    // It fails where no rank can be told any more: in the copy of the finished result.
    bool lost_result = false;
    hetcoll_call call{};
    std::optional<Operation> operation;

    // The call that has made the persistent request.
    [[nodiscard]] std::size_t request() const
    {
        return plan.again < 0 ? number : static_cast<std::size_t>(plan.again);
    }
};

struct Rank {
    std::unique_ptr<Process> process;
    Gpu *gpu = nullptr;
    std::deque<std::unique_ptr<Buffer>> buffers;
    std::list<Running> running;
    std::list<Running> requests; // that do not run, and will be started again
    std::size_t next = 0;        // call of the plan
    bool dead = false;

    // Its GPU's context is current from now on, as it is in a process of its own.
    void enter() const { cuda().driver->cuCtxSetCurrent(gpu->context); }
};

struct SimulatedCommunicator {
    std::unique_ptr<MemoryNetwork> network;
    std::vector<std::unique_ptr<Communicator>> comms; // of each rank
    std::vector<std::unique_ptr<OperationQueue>> queues;
};

using LogFunction = void(int level, const char *line); // of hetcoll_settings

class World {
public:
    World(const Plan &plan, unsigned seed, LogFunction *log);

    [[nodiscard]] const Plan &plan() const { return plan_; }
    [[nodiscard]] Rank &rank(int number) { return ranks_[static_cast<std::size_t>(number)]; }
    [[nodiscard]] std::deque<Rank> &ranks() { return ranks_; }
    [[nodiscard]] std::deque<SimulatedCommunicator> &communicators() { return communicators_; }
    // The rank has a next call, and waits for none before that.
    [[nodiscard]] bool may_start_call(int number) const;
    // The rank's next call begins. `random` decides where its buffers are.
    void start_call(int number, Random &random);
    // A call of the rank is over, and with it its operation, unless that is started again.
    std::list<Running>::iterator end_call(int number, std::list<Running>::iterator call);
    // All calls of all ranks that live.
    [[nodiscard]] bool is_over() const;
    // Calls that have not begun or not ended.
    [[nodiscard]] std::size_t open_calls() const;
    // Each rank's flags in the last two meetings of each communicator.
    void print_meetings();

    bool network_fails = false, some_dead = false; // by now
    std::size_t turn = 0;

private:
    void make_gpus();
    void make_communicators();
    [[nodiscard]] Buffer *buffer_for(Rank &rank, Memory memory, std::size_t bytes, Random &random);
    Running &make_call(int number, const PlannedCall &plan, Random &random);
    // Whether peers go on with a call that has failed on this rank, because nobody has told them.
    // They write to the program's memory by messages, if it is host memory, or by the GPUs of the
    // node, if they have mapped it. The program never has it back, then. All else is over.
    [[nodiscard]] bool goes_on(int number, const Running &call) const;
    [[nodiscard]] bool is_started_after(const Running &call) const;
    void fill_vectors(int number, Running &made);

    const Plan &plan_;
    std::deque<Gpu> gpus_;
    std::deque<Rank> ranks_;
    std::deque<SimulatedCommunicator> communicators_;
};

} // namespace hetcoll::test
