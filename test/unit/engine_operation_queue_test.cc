// A blocking call's way past the queue of its communicator.
#include "engine/call/operation_queue.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

TEST(QueueTurnTest, ComesWhereNothingIsQueued)
{
    OperationQueue queue;
    for (int call = 0; call < 2; ++call) {
        const QueueTurn turn(queue);
        EXPECT_TRUE(turn.has_come());
    }
}

// As where another thread has taken the last operation out and is still in step(): what it then
// gives back must not be the turn of this call.
TEST(QueueTurnTest, IsOneCallsAlone)
{
    OperationQueue queue;
    {
        const QueueTurn turn(queue);
        for (int other = 0; other < 2; ++other) {
            EXPECT_FALSE(QueueTurn(queue).has_come());
        }
    }
    EXPECT_TRUE(QueueTurn(queue).has_come());
}

} // namespace
} // namespace hetcoll
