#include "engine/communicator/watch.h"
#include "engine_nodes.h"

#include <chrono>
#include <thread>

namespace hetcoll {
namespace {

// On a busy machine a rank may poll 25 times a second, and 32 polls take longer than half the time
// after which it is to speak. So long without a look, and it would take itself for stopped.
TEST(Watch, SeesThatAWaitIsLongThoughEveryPollIsSlow)
{
    test::Nodes nodes(std::vector<int>{0});
    const Log log;
    Watch watch(log, *nodes.group[0], {"here"}, 1);
    watch.begin(nullptr);
    int due = 0;
    for (int poll = 0; poll < 80 && due == 0; ++poll) {
        std::this_thread::sleep_for(std::chrono::milliseconds(40));
        due += watch.is_due(0) ? 1 : 0;
    }
    EXPECT_EQ(due, 1);
}

TEST(Watch, IsNeverDueWhereACallMoves)
{
    test::Nodes nodes(std::vector<int>{0});
    const Log log;
    Watch watch(log, *nodes.group[0], {"here"}, 1);
    watch.begin(nullptr);
    for (std::uint64_t moves = 0; moves < 60; ++moves) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(watch.is_due(moves));
    }
}

} // namespace
} // namespace hetcoll
