#include "schedule/in_network.h"

#include "schedule/cost.h"
#include "schedule/verify.h"
#include "test/unit/schedule_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

std::vector<Schedule> build_all(const SwitchTree &tree)
{
    std::vector<Schedule> schedules;
    for (int participant = 0; participant < tree.participants(); ++participant) {
        schedules.push_back(build_in_network(tree, participant));
    }
    return schedules;
}

// With one switch and one rank on a node the sum is the fold in the order of the ranks.
std::string verdict(const SwitchTree &tree)
{
    const bool in_order = tree.leaf_count == 1 && tree.ranks_per_node == 1;
    const Status status =
        verify_schedules(build_all(tree), allreduce_in_network(tree.ranks(), in_order));
    return status.ok() ? "ok" : status.message();
}

SwitchTree one_level(int ranks, int messages, int window)
{
    return {.leaf_of = std::vector<int>(static_cast<std::size_t>(ranks), 0),
            .messages = messages,
            .window = window};
}

// Every leaf has a node, the others are where chance puts them.
SwitchTree random_tree(std::mt19937 &random)
{
    const auto pick = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
    SwitchTree tree{.ranks_per_node = pick(4), .leaf_of = {}, .leaf_count = pick(5)};
    for (int leaf = 0; leaf < tree.leaf_count; ++leaf) {
        tree.leaf_of.push_back(leaf);
    }
    for (int more = pick(6) - 1; more > 0; --more) {
        tree.leaf_of.push_back(pick(tree.leaf_count) - 1);
    }
    std::shuffle(tree.leaf_of.begin(), tree.leaf_of.end(), random);
    tree.messages = pick(7);
    tree.window = pick(4);
    return tree;
}

TEST(InNetworkTest, OneSwitchAddsInTheOrderOfTheRanks)
{
    for (int ranks = 1; ranks <= 24; ++ranks) {
        for (const int messages : {1, 2, 5}) {
            for (const int window : {1, 2, 8}) {
                EXPECT_EQ(verdict(one_level(ranks, messages, window)), "ok")
                    << ranks << " ranks, " << messages << " messages, window " << window;
            }
        }
    }
}

TEST(InNetworkTest, LeavesAndASpineAddOnceWhatEveryRankHas)
{
    std::mt19937 random(20260101);
    for (int i = 0; i < 300; ++i) {
        const SwitchTree tree = random_tree(random);
        ASSERT_EQ(verdict(tree), "ok")
            << tree.ranks_per_node << " ranks on each of " << tree.nodes() << " nodes, "
            << tree.leaf_count << " leaves, " << tree.messages << " messages, window "
            << tree.window;
    }
}

TEST(InNetworkTest, OneHundredAndTwentyEightRanksUnderEightLeavesAreRight)
{
    SwitchTree tree{.leaf_of = {}, .leaf_count = 8, .messages = 3};
    for (int node = 0; node < 128; ++node) {
        tree.leaf_of.push_back(node / 16);
    }
    EXPECT_EQ(verdict(tree), "ok");
}

TEST(InNetworkTest, ComputesTheSumInAnyOrderOfEvents)
{
    std::mt19937 random(7);
    for (unsigned seed = 0; seed < 40; ++seed) {
        const SwitchTree tree = random_tree(random);
        const auto count = static_cast<std::size_t>(3 * tree.block_count() + 1);
        Vectors<int> input(static_cast<std::size_t>(tree.participants()),
                           std::vector<int>(count, 1 << 20)); // a switch's is in no sum
        std::vector<int> sum(count, 0);
        for (int rank = 0; rank < tree.ranks(); ++rank) {
            for (std::size_t i = 0; i < count; ++i) {
                input[static_cast<std::size_t>(rank)][i] = (rank + 1) * static_cast<int>(i + 1);
                sum[i] += (rank + 1) * static_cast<int>(i + 1);
            }
        }
        const InPlace in_place = seed % 2 == 0 ? InPlace::kYes : InPlace::kNo;
        Vectors<int> result = run_all(build_all(tree), input, std::plus<>(), in_place, seed);
        result.resize(static_cast<std::size_t>(tree.ranks()));
        EXPECT_EQ(result, Vectors<int>(result.size(), sum)) << "seed " << seed;
    }
}

TEST(InNetworkTest, ARankSendsItsSliceAndReceivesTheSum)
{
    const SwitchTree tree{
        .ranks_per_node = 4, .leaf_of = {0, 0, 1}, .leaf_count = 2, .messages = 8};
    const ScheduleCost cost = cost_of(build_in_network(tree, 5));
    // 2(n-1)/n of the 32 blocks on the node, 1/n of them through the network.
    EXPECT_EQ(cost.blocks_sent, 2 * 3 * 8 + 8);
}

// More than the window of a rank's messages would be in a switch that must keep them.
TEST(InNetworkTest, NoMessageIsSentBeforeTheResultAWindowBeforeHasArrived)
{
    for (const int window : {1, 2, 3}) {
        const Schedule rank = build_in_network(one_level(3, 6, window), 1);
        std::vector<int> sends, receives;
        for (int index = 0; index < static_cast<int>(rank.steps.size()); ++index) {
            const bool send = rank.steps[static_cast<std::size_t>(index)].kind == StepKind::kSend;
            (send ? sends : receives).push_back(index);
        }
        ASSERT_EQ(sends.size(), 6u);
        for (std::size_t message = 0; message < sends.size(); ++message) {
            const auto waits = rank.after_of(rank.steps[static_cast<std::size_t>(sends[message])]);
            const auto before = static_cast<std::size_t>(window);
            if (message < before) {
                EXPECT_TRUE(waits.empty());
            } else {
                EXPECT_EQ(std::vector<int>(waits.begin(), waits.end()),
                          std::vector<int>{receives[message - before]});
            }
        }
    }
}

// The proof would not let wrong switches pass.
TEST(InNetworkTest, ASwitchThatAddsInTheReverseOrderIsRejected)
{
    std::vector<Schedule> schedules = build_all(one_level(3, 1, 1));
    for (Step &step : schedules.back().steps) {
        step.local_first = false;
    }
    EXPECT_NE(verify_schedules(schedules, allreduce_in_network(3, true))
                  .message()
                  .find("not the left fold of the parts in rank order"),
              std::string::npos);
}

TEST(InNetworkTest, ASwitchThatAddsAPartOfItsOwnIsRejected)
{
    std::vector<Schedule> schedules = build_all(one_level(2, 1, 1));
    schedules.back().steps[0].kind = StepKind::kRecvReduce;
    EXPECT_NE(verify_schedules(schedules, allreduce_in_network(2, false))
                  .message()
                  .find("the part of rank 2 is in it, which has none at first"),
              std::string::npos);
}

TEST(InNetworkTest, AContractWithMoreRanksThanSchedulesIsRejected)
{
    EXPECT_EQ(
        verify_schedules(build_all(one_level(2, 1, 1)), allreduce_in_network(4, false)).message(),
        "the contract names 4 ranks, but there are 3 schedules");
}

TEST(InNetworkTest, AVectorIsCutIntoMessagesOfAtMostTheGivenBytes)
{
    EXPECT_EQ(message_count(0, 100), 1);
    EXPECT_EQ(message_count(100, 100), 1);
    EXPECT_EQ(message_count(101, 100), 2);
    EXPECT_EQ(message_count(std::uint64_t{1} << 40, 1u << 20), 1 << 20);
}

} // namespace
} // namespace hetcoll::test
