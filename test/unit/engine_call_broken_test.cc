// Calls that end on one rank alone, because of the network: further ones end immediately, whatever
// protocol they would go.
#include "test/unit/engine_communicators.h"

namespace hetcoll::test {
namespace {

constexpr std::size_t kFew = 4, kMany = 10000; // elements, below and above what the host sums

// Ranks 0 and 1 share a control page; rank 2 is on another node.
void move_last(std::vector<hetcoll_facts> &facts)
{
    ++facts.back().identity.host;
    ++facts.back().identity.machine;
}

class BrokenTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        ranks_.find_peers();
        ranks_.network().fail_send(1);
        ranks_.call(0, device_, kFew);
        ranks_.call(1, other_, kFew);
        ASSERT_TRUE(ranks_.step_until({0, 1}, [this] { return ranks_.is_over(0); }));
        code_ = ranks_.result(0);
        ASSERT_LT(code_, 0);
        ASSERT_FALSE(ranks_.comm(0).group().page().exists()); // a message may arrive there
    }
    int call(Numbers<int> &vector, std::size_t count, int collective = HETCOLL_ALLREDUCE)
    {
        ranks_.call(0, vector, count, collective);
        EXPECT_TRUE(ranks_.step_until({0}, [this] { return ranks_.is_over(0); }));
        return ranks_.result(0);
    }

    Communicators ranks_{3, default_settings(), move_last};
    Numbers<int> host_{Where::kHost, std::vector<int>(kMany)};
    Numbers<int> device_{Where::kDevice, std::vector<int>(kMany)};
    Numbers<int> other_{Where::kDevice, std::vector<int>(kMany)};
    int code_ = 0;
};

TEST_F(BrokenTest, AfterALostPageEveryCallFailsAtOnceWithTheNetworksCode)
{
    for (const std::size_t count : {kFew, kMany}) {
        EXPECT_EQ(call(host_, count), code_);
        EXPECT_EQ(call(device_, count), code_);
        for (const int collective : {HETCOLL_BCAST, HETCOLL_ALLGATHER}) {
            EXPECT_EQ(call(device_, count, collective), code_);
        }
    }
}

TEST_F(BrokenTest, TheShortestCallOnHostMemoryLeavesItToTheOperation)
{
    std::array<int, kFew> vector{}; // on the stack: surely host memory
    hetcoll_call made{};
    made.send = made.recv = vector.data();
    made.kind = HETCOLL_INT32;
    made.op = HETCOLL_SUM;
    made.count = kFew;
    made.span = sizeof vector;
    made.dense = 1;
    made.tag = Communicators::kTag;
    EXPECT_EQ(HostCalls(ranks_.comm(0)).try_serve(made), std::nullopt);
}

// In a meeting, and in a schedule: copies may be under way to the application's memory.
TEST_F(BrokenTest, ACallThatLosesTheNetworkWaitsForItsOwnGpu)
{
    Numbers<int> last(Where::kDevice, std::vector<int>(kMany));
    for (const int nth : {1, 4}) {
        Communicators nodes(3, default_settings(), move_last);
        nodes.find_peers();
        const CallCount waited("cuStreamSynchronize");
        nodes.network().fail_send(nth);
        nodes.call(0, device_, kMany);
        nodes.call(1, other_, kMany);
        nodes.call(2, last, kMany);
        const auto one_failed = [&] {
            return (nodes.is_over(0) && nodes.result(0) < 0) ||
                   (nodes.is_over(1) && nodes.result(1) < 0) ||
                   (nodes.is_over(2) && nodes.result(2) < 0);
        };
        ASSERT_TRUE(nodes.step_until({0, 1, 2}, one_failed)) << nth;
        EXPECT_GE(waited.get(), 2u) << nth;
    }
}

TEST_F(BrokenTest, OtherCommunicatorsGoOn)
{
    Communicators others(2, default_settings());
    Numbers<int> first(Where::kDevice, {1, 2, 3, 4}), second(Where::kDevice, {5, 6, 7, 8});
    others.call(0, first, kFew);
    others.call(1, second, kFew);
    ASSERT_TRUE(others.run());
    EXPECT_EQ(first.read(), (std::vector<int>{6, 8, 10, 12}));
}

} // namespace
} // namespace hetcoll::test
