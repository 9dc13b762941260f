#include "schedule/match.h"

#include "schedule/builder.h"
#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace hetcoll::test {
namespace {

// Every rank of a node knows its steps.
struct MatchedNode {
    std::vector<int> ranks;
    std::vector<std::vector<LocalStep>> steps; // by place in `ranks`

    MatchedNode(const std::vector<Schedule> &schedules, std::vector<int> on_node)
        : ranks(std::move(on_node))
    {
        for (const int rank : ranks) {
            steps.push_back(match_local_steps(rank, schedules[rank], peers_of(schedules, rank)));
        }
    }

    std::vector<LocalSchedule> peers_of(const std::vector<Schedule> &schedules, int rank) const
    {
        std::vector<LocalSchedule> peers;
        for (const int other : ranks) {
            if (other != rank) {
                peers.push_back({other, &schedules[other]});
            }
        }
        return peers;
    }

    int place_of(int rank) const
    {
        const auto it = std::find(ranks.begin(), ranks.end(), rank);
        return it == ranks.end() ? -1 : static_cast<int>(it - ranks.begin());
    }
};

class MatchTest : public ::testing::TestWithParam<NamedAlgorithm> {};

TEST_P(MatchTest, WordsAreDenseInListOrderAndOnlyStepsWithLocalPeersHaveOne)
{
    const std::vector<Schedule> schedules = build_all(GetParam(), 7);
    const MatchedNode node(schedules, {0, 2, 3, 6});
    for (int place = 0; place < 4; ++place) {
        const Schedule &mine = schedules[node.ranks[place]];
        int next = 0;
        for (std::size_t index = 0; index < mine.steps.size(); ++index) {
            const bool local = node.place_of(mine.steps[index].peer) >= 0;
            EXPECT_EQ(node.steps[place][index].word, local ? next++ : -1);
            EXPECT_EQ(node.steps[place][index].peer_word >= 0, local);
        }
        EXPECT_EQ(word_count(node.steps[place]), next);
    }
}

TEST_P(MatchTest, BothSidesOfAMessageNameEachOther)
{
    const std::vector<Schedule> schedules = build_all(GetParam(), 8);
    const MatchedNode node(schedules, {0, 1, 2, 5, 7});
    for (int place = 0; place < 5; ++place) {
        const Schedule &mine = schedules[node.ranks[place]];
        for (std::size_t index = 0; index < mine.steps.size(); ++index) {
            const LocalStep &local = node.steps[place][index];
            if (local.word < 0) {
                continue;
            }
            const Step &step = mine.steps[index];
            const int there = node.place_of(step.peer);
            const auto &theirs = node.steps[there];
            const auto met = std::find_if(theirs.begin(), theirs.end(), [&](const LocalStep &it) {
                return it.word == local.peer_word;
            });
            ASSERT_NE(met, theirs.end());
            const Step &other = schedules[step.peer].steps[met - theirs.begin()];
            EXPECT_EQ(met->peer_word, local.word);
            EXPECT_EQ(other.peer, node.ranks[place]);
            EXPECT_EQ(other.blocks, step.blocks);
            EXPECT_NE(other.kind == StepKind::kSend, step.kind == StepKind::kSend);
            EXPECT_EQ(local.peer_from_input, other.from_input);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, MatchTest, ::testing::ValuesIn(kEveryKind),
                         [](const auto &tested) { return std::string(tested.param.name); });

TEST(MatchLocalStepsTest, TheIthSendOfAChannelMeetsItsIthReceive)
{
    ScheduleBuilder sender(2, 2), receiver(2, 2);
    for (const int channel : {0, 1, 0, 1}) {
        sender.set_channel(channel);
        sender.send(1, {channel, 1});
    }
    for (const int channel : {1, 1, 0, 0}) {
        receiver.set_channel(channel);
        receiver.recv(0, {channel, 1});
    }
    const Schedule send = std::move(sender).finish(), recv = std::move(receiver).finish();
    const LocalSchedule peer{1, &recv};
    std::vector<int> met;
    for (const LocalStep &step : match_local_steps(0, send, {&peer, 1})) {
        met.push_back(step.peer_word);
    }
    EXPECT_EQ(met, (std::vector<int>{2, 0, 3, 1}));
}

TEST(MatchLocalStepsTest, ARankAloneOnItsNodeHasNoWords)
{
    const Schedule mine = build_ring(0, 3);
    EXPECT_EQ(word_count(match_local_steps(0, mine, {})), 0);
    for (const LocalStep &step : match_local_steps(0, mine, {})) {
        EXPECT_EQ(step.word, -1);
        EXPECT_EQ(step.peer_word, -1);
    }
}

} // namespace
} // namespace hetcoll::test
