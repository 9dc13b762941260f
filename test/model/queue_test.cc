// engine/call/operation_queue.cc in everything that C++ allows: one operation of a communicator
// runs at a time, whoever makes progress: MPI's own thread, a progress thread, or a blocking call
// in which Open MPI's progress starts another operation.
#include "ranks.h"

#include "engine/call/operation_queue.h"

#include <array>

namespace model {
namespace {

using hetcoll::OperationQueue;
using hetcoll::Queued;
using hetcoll::QueueTurn;

constexpr int kOperations = 4;

// Data of one operation at a time: two that run concurrently are a data race.
struct State {
    int steps = 0;
    bool blocking = false; // a blocking call runs outside of the queue
    bool first_is_gone = false;
};
State state;
int steps_left[kOperations];

class Operation final : public Queued {
public:
    [[nodiscard]] bool step() override;
    void fail_without_memory() noexcept override {}
};
std::array<Operation, kOperations> operations;
Operation &operation(int i) { return operations[static_cast<std::size_t>(i)]; }

bool Operation::step()
{
    require(!state.blocking, "an operation runs inside a blocking call");
    require(this != &operation(0) || !state.first_is_gone, "an operation runs that was destroyed");
    ++state.steps;
    return --steps_left[this - operations.data()] <= 0;
}

class QueueModel : public ::testing::TestWithParam<int> { // steps that an operation takes
public:
    QueueModel()
    {
        forget_shares();
        share(&state, sizeof state, "state");
        for (int &left : steps_left) {
            left = GetParam();
        }
    }
    OperationQueue &queue = *new OperationQueue;
};
INSTANTIATE_TEST_SUITE_P(Steps, QueueModel, ::testing::Values(1, 2));

// MPI_Iallreduce, then MPI_Allreduce, in which Open MPI's progress may start another operation.
void start_and_block(OperationQueue &queue, bool nested)
{
    queue.push(operation(0));
    const QueueTurn turn(queue);
    if (!turn.has_come()) {
        return;
    }
    require(steps_left[0] <= 0, "operations run in the order in which they were started");
    state.blocking = true;
    ++state.steps;
    if (nested) {
        queue.push(operation(1));
        queue.step();
    }
    state.blocking = false;
}

// coll_hetcoll_progress_thread, or another thread of the program in MPI.
void make_progress(OperationQueue &queue)
{
    for (int i = 0; i < 3; ++i) {
        queue.step();
    }
}

Report explore_with_progress(OperationQueue &queue, const std::function<void()> &thread)
{
    return explore({thread, [&queue] { make_progress(queue); }}, {.mode = Mode::kInterleavings});
}

TEST_P(QueueModel, ABlockingCallHasTheEngineForItself)
{
    EXPECT_TRUE(proved(explore_with_progress(queue, [this] { start_and_block(queue, false); })));
}

TEST_P(QueueModel, SoItHasWhenProgressStartsAnotherOperationInIt)
{
    EXPECT_TRUE(proved(explore_with_progress(queue, [this] { start_and_block(queue, true); })));
}

// Then it is its owner's, who may destroy it, or run another one outside of the queue.
TEST_P(QueueModel, AnOperationCompletesWhoeverStepsIt)
{
    EXPECT_TRUE(proved(explore_with_progress(queue, [this] {
        queue.push(operation(0));
        while (!operation(0).is_complete()) {
            queue.step();
            wait();
        }
        state.first_is_gone = true;
        const QueueTurn turn(queue);
        if (turn.has_come()) {
            ++state.steps;
        }
    })));
}

} // namespace
} // namespace model
