// Calls whose ranks will never all come, because one has died or one has revoked the communicator:
// each ends where it waits, once nothing touches its memory any more.
#include "aggregator/client.h"
#include "test/unit/engine_communicators.h"
#include "test/unit/engine_scripted_aggregator.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kFew = 4, kMany = 10000; // elements, below and above what the host sums
constexpr int kDead = -75, kRevoked = -77;

hetcoll_settings by(const char *algorithm)
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = algorithm;
    settings.cpu_read_limit = settings.cpu_write_limit = 0; // few bytes go by a kernel
    return settings;
}

// Whether somebody has said since that a call has ended there.
bool has_ended(const std::string &where)
{
    const std::vector<std::string> said = take_log();
    return std::any_of(said.begin(), said.end(), [&](const std::string &line) {
        return line.find("ends with an error " + where + ", because") != line.npos;
    });
}

// Rank 1 dies, or is late.
class FailureTest : public ::testing::Test {
protected:
    explicit FailureTest(const char *algorithm = "auto",
                         const std::function<void(std::vector<hetcoll_facts> &)> &disguise = {})
        : ranks_(2, by(algorithm), disguise, true)
    {
    }
    void step(int turns = 300)
    {
        for (int turn = 0; turn < turns; ++turn) {
            ranks_.step({0});
        }
    }
    void break_for(int rank, int code)
    {
        ranks_.network().break_for(rank, code);
        ranks_.network().end_requests(rank);
    }
    [[nodiscard]] bool ends(int rank = 0)
    {
        return ranks_.step_until({rank}, [&] { return ranks_.is_over(rank); });
    }
    // Rank 0 alone calls, waits, and hears of it.
    void expect_left(Numbers<int> &vector, std::size_t count, int collective = HETCOLL_ALLREDUCE)
    {
        ranks_.call(0, vector, count, collective);
        step();
        ASSERT_FALSE(ranks_.is_over(0));
        break_for(0, kDead);
        ASSERT_TRUE(ends());
        EXPECT_EQ(ranks_.result(0), kDead);
    }

    Communicators ranks_;
    Numbers<int> host_{Where::kHost, std::vector<int>(kMany, 1)};
    Numbers<int> device_{Where::kDevice, std::vector<int>(kMany, 1)};
    Numbers<int> other_{Where::kDevice, std::vector<int>(kMany, 2)};
};

TEST_F(FailureTest, TheFirstCallEndsWhereItMakesThePage)
{
    expect_left(device_, kMany);
    EXPECT_TRUE(has_ended("in the communicator's first call"));
}

TEST_F(FailureTest, EveryKindOfCallEndsWhereItWaits)
{
    for (const bool device : {false, true}) {
        for (const std::size_t count : {kFew, kMany}) {
            for (const int collective : {HETCOLL_ALLREDUCE, HETCOLL_BCAST}) {
                Communicators ranks(2, by("auto"), {}, true);
                ranks.find_peers();
                ranks.call(0, device ? device_ : host_, count, collective);
                ASSERT_TRUE(ranks.step_to_meeting({0}));
                ASSERT_FALSE(ranks.is_over(0));
                ranks.network().break_for(0, kDead);
                ranks.network().end_requests(0);
                ASSERT_TRUE(ranks.step_until({0}, [&] { return ranks.is_over(0); }));
                EXPECT_EQ(ranks.result(0), kDead);
                EXPECT_EQ(ranks.counter(0, HETCOLL_CALLS_FAILED), 1U);
                EXPECT_TRUE(has_ended("before the ranks have agreed"));
            }
        }
    }
}

TEST_F(FailureTest, TheShortestCallOnHostMemoryEndsToo)
{
    Numbers<int> other(Where::kHost, std::vector<int>(kFew));
    ranks_.call(0, host_, kFew);
    ranks_.call(1, other, kFew);
    ASSERT_TRUE(ranks_.run());
    std::array<int, kFew> vector{}; // on the stack: surely host memory
    hetcoll_call made{};
    made.send = made.recv = vector.data();
    made.kind = HETCOLL_INT32;
    made.op = HETCOLL_SUM;
    made.count = kFew;
    made.span = sizeof vector;
    made.dense = 1;
    made.tag = Communicators::kTag;
    break_for(0, kRevoked);
    EXPECT_EQ(HostCalls(ranks_.comm(0)).try_serve(made), kRevoked);
    EXPECT_EQ(HostCalls(ranks_.comm(0)).try_serve(made), std::nullopt); // the operation refuses it
}

TEST_F(FailureTest, ACallThatBeginsLaterFailsAtOnceAndTellsNobody)
{
    ranks_.find_peers();
    break_for(0, kRevoked);
    ranks_.call(0, device_, kMany);
    ranks_.step({0});
    EXPECT_TRUE(ranks_.is_over(0));
    EXPECT_EQ(ranks_.result(0), kRevoked);
    EXPECT_TRUE(ranks_.said(0).empty());
}

// Who learns of a failure between two calls is never in one that would leave.
TEST_F(FailureTest, ACallThatBeginsLaterLeavesTheAggregators)
{
    const std::string key = ::testing::TempDir() + "hetcoll_failures_key";
    std::ofstream(key) << "0123456789abcdef\n";
    ASSERT_EQ(chmod(key.c_str(), 0600), 0);
    hetcoll_settings settings = default_settings();
    settings.aggregators = "left:7001";
    settings.aggregator_key = key.c_str();
    ScriptedAggregator aggregator;
    Communicators ranks(2, settings, {}, true);
    ranks.call(0, device_, kMany);
    ranks.call(1, other_, kMany);
    ASSERT_TRUE(ranks.run());
    ASSERT_EQ(aggregator.clients, 2);
    ranks.network().break_for(0, kRevoked);
    ranks.call(0, device_, kMany);
    ranks.step({0});
    EXPECT_EQ(ranks.result(0), kRevoked);
    EXPECT_EQ(aggregator.clients, 1);
    EXPECT_EQ(unlink(key.c_str()), 0);
}

TEST_F(FailureTest, ALivePeersGpuIsWaitedFor)
{
    ranks_.find_peers();
    std::atomic<std::uint32_t> &works = ranks_.comm(1).group().own_slot().works;
    works = 1;
    ranks_.call(0, device_, kMany);
    ASSERT_TRUE(ranks_.step_to_meeting({0}));
    break_for(0, kDead);
    step();
    EXPECT_FALSE(ranks_.is_over(0));
    works = 0;
    ASSERT_TRUE(ends());
    EXPECT_EQ(ranks_.result(0), kDead);
}

class MappedFailureTest : public FailureTest {
protected:
    MappedFailureTest() : FailureTest("two_shot") {}
    // Both ranks have made a call, so that all memory is known.
    void SetUp() override
    {
        ranks_.find_peers();
        ranks_.call(0, device_, kMany);
        ranks_.call(1, other_, kMany);
        ASSERT_TRUE(ranks_.run());
        ASSERT_EQ(device_.read(), std::vector<int>(kMany, 3));
        upload(reinterpret_cast<CUdeviceptr>(device_.data()), std::vector<int>(kMany, 1));
        upload(reinterpret_cast<CUdeviceptr>(other_.data()), std::vector<int>(kMany, 2));
    }
};

TEST_F(MappedFailureTest, AGpuThatHasRunIsSaidToHaveStopped)
{
    EXPECT_EQ(ranks_.comm(0).group().own_slot().works, 0U);
    EXPECT_EQ(ranks_.comm(1).group().own_slot().works, 0U);
}

TEST_F(MappedFailureTest, MemoryOfARankThatHasLeftIsNotTouched)
{
    ranks_.call(0, device_, kMany);
    ranks_.call(1, other_, kMany);
    ASSERT_TRUE(ranks_.step_until({1}, [this] { return !ranks_.said(1).empty(); }));
    break_for(1, kDead);
    ASSERT_TRUE(ends(1)); // rank 0 does not know yet
    EXPECT_EQ(ranks_.result(1), kDead);
    step();
    EXPECT_FALSE(ranks_.is_over(0));
    EXPECT_EQ(other_.read(), std::vector<int>(kMany, 2));
    break_for(0, kDead);
    ASSERT_TRUE(ends());
    EXPECT_EQ(ranks_.result(0), kDead);
    EXPECT_TRUE(has_ended("in a meeting of two_shot")); // which it has not touched
    EXPECT_EQ(device_.read(), std::vector<int>(kMany, 1));
}

// By messages between nodes: requests are under way when a rank is lost.
class MessageFailureTest : public FailureTest {
protected:
    MessageFailureTest()
        : FailureTest("ring", [](std::vector<hetcoll_facts> &facts) {
              ++facts.back().identity.host;
              ++facts.back().identity.machine;
          })
    {
    }
};

TEST_F(MessageFailureTest, ACallEndsOnlyWhenItsMessagesHave)
{
    ranks_.call(0, device_, kMany);
    step();
    ranks_.network().break_for(0, kDead);
    step();
    EXPECT_FALSE(ranks_.is_over(0));
    ranks_.network().end_requests(0);
    ASSERT_TRUE(ends());
    EXPECT_EQ(ranks_.result(0), kDead);
    EXPECT_EQ(ranks_.network().unmatched(), 0);
}

TEST_F(MessageFailureTest, AScheduleEndsWhereItWaits)
{
    ranks_.call(0, device_, kMany);
    ranks_.call(1, other_, kMany);
    ASSERT_TRUE(ranks_.run());
    ranks_.call(0, device_, kMany);
    ranks_.call(1, other_, kMany);
    const Executor &executor = ranks_.comm(0).planner().executor();
    const auto runs = [&executor, all = executor.moves()] {
        return executor.moves() > 2 && executor.moves() < all;
    };
    ASSERT_TRUE(ranks_.step_until({0, 1}, runs));
    ASSERT_FALSE(ranks_.is_over(0));
    break_for(0, kDead);
    ASSERT_TRUE(ends());
    EXPECT_EQ(ranks_.result(0), kDead);
    EXPECT_TRUE(has_ended("in ring"));
}

} // namespace
} // namespace hetcoll::test
