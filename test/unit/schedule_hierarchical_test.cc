
#include "schedule/cost.h"
#include "schedule/print.h"
#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace hetcoll::test {
namespace {

constexpr Algorithm kBetweenNodes[] = {Algorithm::kRing,
                                       Algorithm::kRabenseifner,
                                       Algorithm::kRecursiveDoubling,
                                       Algorithm::kRadix3,
                                       Algorithm::kRadix4,
                                       Algorithm::kRadix8,
                                       Algorithm::kRecursiveMultiplying};

int count_ranks(const Groups &groups)
{
    int ranks = 0;
    for (const NodeGroups &node : groups.nodes) {
        for (const GpuGroup &gpu : node) {
            ranks += static_cast<int>(gpu.size());
        }
    }
    return ranks;
}

std::vector<Schedule> build_all(const Groups &groups, const Way &way, int rack_nodes = 0)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < count_ranks(groups); ++rank) {
        schedules.push_back(build_hierarchical(rank, groups, way, rack_nodes));
    }
    return schedules;
}

std::vector<Schedule> build_all(const Groups &groups, Algorithm algorithm, int segments,
                                bool over_trees = false)
{
    return build_all(groups,
                     {.between_nodes = algorithm, .over_trees = over_trees, .segments = segments});
}

// "0,3 5 | 1 2,4": a comma between ranks of a GPU, a bar between nodes.
std::string to_text(const Groups &groups)
{
    std::string text;
    for (const NodeGroups &node : groups.nodes) {
        text += text.empty() ? "" : " |";
        for (const GpuGroup &gpu : node) {
            for (const int rank : gpu) {
                text += (rank == gpu.front() ? " " : ",") + std::to_string(rank);
            }
        }
    }
    return text;
}

// One rank on each GPU, ranks in order.
Groups nodes_of(const std::vector<int> &gpus)
{
    Groups groups;
    int rank = 0;
    for (const int count : gpus) {
        NodeGroups &node = groups.nodes.emplace_back();
        while (static_cast<int>(node.size()) < count) {
            node.push_back({rank++});
        }
    }
    return groups;
}

// Ranks anywhere, as many or as few on a node and on a GPU as it happens.
Groups random_groups(std::mt19937 &random, int size)
{
    const auto upto = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
    std::vector<int> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random);
    const int most_gpus = upto(8), most_ranks = upto(4);
    Groups groups;
    for (auto next = ranks.begin(); next != ranks.end();) {
        NodeGroups &node = groups.nodes.emplace_back();
        for (int gpus = upto(most_gpus); gpus > 0 && next != ranks.end(); --gpus) {
            const auto end = next + std::min<std::ptrdiff_t>(upto(most_ranks), ranks.end() - next);
            node.emplace_back(next, end);
            std::sort(node.back().begin(), node.back().end());
            next = end;
        }
    }
    return groups;
}

TEST(HierarchicalTest, OneToThirtySevenRanksAnywhereAreProved)
{
    std::mt19937 random(20251121);
    for (int size = 1; size <= 37; ++size) {
        for (int i = 0; i < 6; ++i) {
            const Groups groups = random_groups(random, size);
            const int segments = 1 + i % 4;
            for (const Algorithm algorithm : kBetweenNodes) {
                EXPECT_EQ(verdict(build_all(groups, algorithm, segments)), "ok")
                    << to_text(groups) << ", " << segments << " segments, algorithm "
                    << static_cast<int>(algorithm);
            }
        }
    }
}

TEST(HierarchicalTest, FragmentsOfNodesAreProved)
{
    for (const std::vector<int> &gpus : std::vector<std::vector<int>>{{1, 7},
                                                                      {3, 5},
                                                                      {2, 6},
                                                                      {8},
                                                                      {1},
                                                                      {1, 1},
                                                                      {1, 1, 1, 1, 1},
                                                                      {1, 1, 7},
                                                                      {8, 8},
                                                                      {5, 8, 3},
                                                                      {4, 6, 7, 8}}) {
        for (const Algorithm algorithm : kBetweenNodes) {
            for (const int segments : {1, 2, 3, 4}) {
                EXPECT_EQ(verdict(build_all(nodes_of(gpus), algorithm, segments)), "ok")
                    << to_text(nodes_of(gpus)) << ", " << segments << " segments";
            }
        }
    }
}

// One to three trees of any shape on each node but some.
void add_random_trees(std::mt19937 &random, Groups &groups)
{
    const auto upto = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
    for (const NodeGroups &node : groups.nodes) {
        std::vector<TreeShape> &trees = groups.trees.emplace_back();
        for (int i = upto(3); i > 0; --i) {
            TreeShape &tree = trees.emplace_back(TreeShape{0, {-1}, 1 + upto(2)});
            for (int gpu = 1; gpu < static_cast<int>(node.size()); ++gpu) {
                tree.parent.push_back(upto(gpu - 1));
            }
        }
    }
}

TEST(HierarchicalTest, TreesOfAnyShapeOnSomeNodesAreProved)
{
    std::mt19937 random(20261122);
    for (int size = 2; size <= 29; ++size) {
        for (const int segments : {1, 3, 8}) {
            Groups groups = random_groups(random, size);
            add_random_trees(random, groups);
            for (const Algorithm algorithm : kBetweenNodes) {
                for (const int lanes : {1, 2, 3, 8}) { // some have no slice of theirs on a node
                    EXPECT_EQ(verdict(build_all(groups, {.between_nodes = algorithm,
                                                         .over_trees = true,
                                                         .segments = segments,
                                                         .lanes = lanes})),
                              "ok")
                        << to_text(groups) << ", " << segments << " segments of " << lanes
                        << " lanes";
                }
            }
        }
    }
}

// The same number of slices on each node, on any of its GPUs.
DealtSlices random_slices(std::mt19937 &random, const Groups &groups)
{
    const auto upto = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
    const int slices = 1 + upto(15);
    DealtSlices dealt;
    for (const NodeGroups &node : groups.nodes) {
        std::vector<int> &counts = dealt.emplace_back(node.size(), 0);
        for (int i = 0; i < slices; ++i) {
            ++counts[static_cast<std::size_t>(upto(static_cast<int>(node.size()) - 1))];
        }
    }
    return dealt;
}

TEST(HierarchicalTest, SlicesOfAnyGpusAreProved)
{
    std::mt19937 random(20261125);
    for (int size = 2; size <= 29; ++size) {
        for (const int segments : {1, 3, 8}) {
            Groups groups = random_groups(random, size);
            add_random_trees(random, groups);
            groups.slices = random_slices(random, groups);
            groups.near_slices = random_slices(random, groups);
            for (const Algorithm algorithm : kBetweenNodes) {
                for (const bool over_trees : {false, true}) {
                    EXPECT_EQ(verdict(build_all(groups, {.between_nodes = algorithm,
                                                         .by_links = true,
                                                         .near_only = segments == 3,
                                                         .over_trees = over_trees,
                                                         .segments = segments,
                                                         .lanes = over_trees ? 4 : 1})),
                              "ok")
                        << to_text(groups) << ", " << segments << " segments";
                }
            }
        }
    }
}

TEST(HierarchicalTest, RacksOfNodesComeFirst)
{
    const Groups groups = nodes_of({2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
    for (const Algorithm algorithm : kBetweenNodes) {
        EXPECT_EQ(verdict(build_all(groups, {.between_nodes = algorithm, .by_racks = true}, 6)),
                  "ok");
    }
    const Schedule schedule =
        build_hierarchical(0, groups, {.between_nodes = Algorithm::kRadix4, .by_racks = true}, 6);
    int crossing = 0;
    for (const Step &step : schedule.steps) {
        crossing += step.kind == StepKind::kSend && step.peer >= 12 ? step.blocks.count : 0;
    }
    EXPECT_EQ(crossing, 2); // one of 12 parts of the slice there, one back
}

TEST(HierarchicalTest, SlicesByFlowOfTheSameOwnersGoTogether)
{
    Groups groups = nodes_of({3, 2});
    groups.slices = {{5, 0, 9}, {7, 7}};
    const auto schedules = build_all(groups, {.by_links = true});
    const auto sent_far = [&](int rank) {
        std::vector<std::pair<int, int>> sent; // to whom, how many blocks
        for (const Step &step : schedules[static_cast<std::size_t>(rank)].steps) {
            if (step.kind == StepKind::kSend && (step.peer < 3) != (rank < 3)) {
                sent.emplace_back(step.peer, step.blocks.count);
            }
        }
        return sent;
    };
    using Sent = std::vector<std::pair<int, int>>;
    EXPECT_EQ(sent_far(0), (Sent{{3, 5}, {3, 5}})) << "a half each way, of two";
    EXPECT_EQ(sent_far(1), Sent{}) << "no slice";
    EXPECT_EQ(sent_far(2), (Sent{{3, 2}, {4, 7}, {3, 2}, {4, 7}}));
}

TEST(HierarchicalTest, OverTreesRanksOfANodeTalkAlongThemOnly)
{
    Groups groups = nodes_of({4, 4});
    const TreeShape chain{0, {-1, 0, 1, 2}, 1}, star{0, {-1, 0, 0, 0}, 2};
    groups.trees = {{chain}, {star, chain}};
    const auto schedules = build_all(groups, Algorithm::kRing, 3, true);
    for (int rank = 0; rank < 8; ++rank) {
        int vectors = 0; // blocks to the same node
        for (const Step &step : schedules[rank].steps) {
            if (step.kind == StepKind::kSend && step.peer / 4 == rank / 4) {
                const bool in_star = rank >= 4 && step.channel < 2;
                EXPECT_TRUE(in_star ? rank == 4 || step.peer == 4 : std::abs(step.peer - rank) == 1)
                    << rank << " to " << step.peer << " in channel " << int{step.channel};
                vectors += step.blocks.count;
            }
        }
        const int ends = rank < 4 ? 3 * (rank == 0 || rank == 3 ? 1 : 2)
                                  : 2 * (rank == 4 ? 3 : 1) + (rank == 4 || rank == 7 ? 1 : 2);
        EXPECT_EQ(vectors, ends * schedules[rank].block_count / 3) << "one for each link";
    }
}

// Each has some of its segment's slices in a channel and a tree of its own. Where slices are equal
// there are no more messages than in one lane.
TEST(HierarchicalTest, LanesShareASegmentsSlices)
{
    Groups groups = nodes_of({4, 4});
    const TreeShape chain{0, {-1, 0, 1, 2}, 1}, star{0, {-1, 0, 0, 0}, 1};
    groups.trees = {{chain, star}, {star, chain}};
    Way way{.over_trees = true, .segments = 3, .lanes = 2};
    const auto lanes = build_all(groups, way);
    way.lanes = 1;
    const auto one = build_all(groups, way);
    std::size_t steps = 0, in_one = 0;
    for (std::size_t rank = 0; rank < lanes.size(); ++rank) {
        const Schedule &schedule = lanes[rank];
        steps += schedule.steps.size();
        in_one += one[rank].steps.size();
        EXPECT_EQ(schedule.channel_count, 6);
        EXPECT_EQ(schedule.block_count, one[rank].block_count);
        const int blocks = schedule.block_count / 6; // of a lane
        for (const Step &step : schedule.steps) {
            EXPECT_EQ(step.blocks.first / blocks, step.channel);
            EXPECT_EQ((step.blocks.first + step.blocks.count - 1) / blocks, step.channel);
            const bool in_star = (step.channel % 2 == 1) == (rank < 4);
            EXPECT_TRUE(step.peer / 4 != static_cast<int>(rank) / 4 || !in_star ||
                        step.peer % 4 == 0 || rank % 4 == 0)
                << rank << " to " << step.peer << " in channel " << int{step.channel};
        }
    }
    EXPECT_EQ(steps, in_one);
    way.lanes = 64;
    EXPECT_EQ(build_all(groups, way).front().channel_count, 12) << "a lane has a slice";
}

// One that has much to wait for begins when the one before the last has ended, so that the first
// ones are soon between the nodes.
TEST(HierarchicalTest, TwoSegmentsAtOnceBeginOnANode)
{
    const Schedule schedule = build_hierarchical(1, nodes_of({4, 4}), {.segments = 4});
    std::vector<int> first(4, -1), last(4, -1); // pulls of the first phase
    for (int i = 0; i < static_cast<int>(schedule.steps.size()); ++i) {
        const Step &step = schedule.steps[i];
        if (step.kind == StepKind::kRecvReduce && step.peer < 4) {
            first[step.channel] = first[step.channel] < 0 ? i : first[step.channel];
            last[step.channel] = i;
        }
    }
    for (int segment = 0; segment < 4; ++segment) {
        const auto after = schedule.after_of(schedule.steps[first[segment]]);
        EXPECT_EQ(segment >= 2, segment >= 2 && std::find(after.begin(), after.end(),
                                                          last[segment - 2]) != after.end());
        EXPECT_EQ(after.size(), segment >= 2 ? 1u : 0u);
    }
}

// The part of the vector that a node sends to other nodes, in blocks, of block_count.
struct Share {
    int blocks, of;
};

Share sent_by_node(const std::vector<Schedule> &schedules, const NodeGroups &node)
{
    Share share{0, schedules[0].block_count};
    const auto is_here = [&](int rank) {
        return std::any_of(node.begin(), node.end(), [rank](const GpuGroup &gpu) {
            return std::find(gpu.begin(), gpu.end(), rank) != gpu.end();
        });
    };
    for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank) {
        for (const Step &step : schedules[rank].steps) {
            if (is_here(rank) && step.kind == StepKind::kSend && !is_here(step.peer)) {
                share.blocks += step.blocks.count;
            }
        }
    }
    return share;
}

TEST(HierarchicalTest, WithTheRingEachNodeSendsTheLeastPossibleToOthers)
{
    std::mt19937 random(7);
    for (int size = 2; size <= 37; ++size) {
        const Groups groups = random_groups(random, size);
        const int nodes = static_cast<int>(groups.nodes.size());
        const auto schedules = build_all(groups, Algorithm::kRing, 2);
        for (const NodeGroups &node : groups.nodes) {
            const Share share = sent_by_node(schedules, node);
            EXPECT_EQ(share.blocks * nodes, 2 * (nodes - 1) * share.of) << to_text(groups);
        }
    }
}

TEST(HierarchicalTest, RabenseifnerBetweenAPowerOfTwoNodesSendsAsLittleAsTheRing)
{
    for (const int nodes : {2, 4, 8}) {
        const Groups groups = nodes_of(std::vector<int>(nodes, 3));
        for (const NodeGroups &node : groups.nodes) {
            const Share share = sent_by_node(build_all(groups, Algorithm::kRabenseifner, 1), node);
            EXPECT_EQ(share.blocks * nodes, 2 * (nodes - 1) * share.of) << nodes << " nodes";
        }
    }
}

TEST(HierarchicalTest, RecursiveDoublingBetweenNodesSendsTheVectorOnceARound)
{
    const Groups groups = nodes_of({2, 3, 1, 3, 3, 2, 3, 1});
    const Share share =
        sent_by_node(build_all(groups, Algorithm::kRecursiveDoubling, 2), groups.nodes[3]);
    EXPECT_EQ(share.blocks, 3 * share.of);
}

// The formula of hierarchical.cc for a leader that owns `owned` of `slices` slices, for one
// segment.
ScheduleCost expected_cost(int nodes, int slices, int owned, int leaders, int ranks_on_gpu)
{
    const int all = slices * nodes; // blocks: the ring cuts a slice into as many as nodes
    const int mine = owned * nodes;
    return {.messages_sent = 2 * (leaders - 1) + 2 * (nodes - 1) * owned + ranks_on_gpu - 1,
            .blocks_sent = (all - mine) + 2 * (nodes - 1) * owned + (leaders - 1) * mine +
                           (ranks_on_gpu - 1) * all,
            .blocks_reduced =
                (ranks_on_gpu - 1) * all + (leaders - 1) * mine + (nodes - 1) * owned};
}

TEST(HierarchicalTest, ALeaderSendsAndReducesWhatTheTableOfCostsSays)
{
    std::mt19937 random(11);
    for (int size = 1; size <= 37; ++size) {
        const Groups groups = random_groups(random, size);
        const int nodes = static_cast<int>(groups.nodes.size());
        std::size_t slices = 1;
        for (const NodeGroups &node : groups.nodes) {
            slices = std::max(slices, node.size());
        }
        for (const NodeGroups &node : groups.nodes) {
            for (std::size_t gpu = 0; gpu < node.size(); ++gpu) {
                int owned = 0;
                for (std::size_t slice = 0; slice < slices; ++slice) {
                    owned += slice * node.size() / slices == gpu ? 1 : 0;
                }
                const ScheduleCost cost =
                    cost_of(build_hierarchical(node[gpu].front(), groups, {.segments = 3}));
                const ScheduleCost expected = expected_cost(nodes, static_cast<int>(slices), owned,
                                                            static_cast<int>(node.size()),
                                                            static_cast<int>(node[gpu].size()));
                EXPECT_EQ(cost.messages_sent, 3 * expected.messages_sent) << to_text(groups);
                EXPECT_EQ(cost.blocks_sent, 3 * expected.blocks_sent) << to_text(groups);
                EXPECT_EQ(cost.blocks_reduced, 3 * expected.blocks_reduced) << to_text(groups);
            }
        }
    }
}

TEST(HierarchicalTest, AllLeadersOfANodeExchangeWithOtherNodesAtOnce)
{
    const auto schedules = build_all(nodes_of({4, 4}), Algorithm::kRing, 1);
    for (int rank = 0; rank < 4; ++rank) {
        int blocks = 0;
        for (const Step &step : schedules[rank].steps) {
            if (step.kind == StepKind::kSend && step.peer >= 4) {
                EXPECT_EQ(step.peer, rank + 4) << "the owner of the same slice";
                blocks += step.blocks.count;
            }
        }
        EXPECT_EQ(blocks, 2) << "of the 8, two for each slice";
    }
}

TEST(HierarchicalTest, SlicesOfOneOwnerGoInOneMessageOnTheNode)
{
    // Four slices, two for each of ranks 4 and 5.
    const Schedule owner = build_hierarchical(5, nodes_of({4, 2}), {});
    std::vector<BlockRange> sent;
    for (const Step &step : owner.steps) {
        if (step.kind == StepKind::kSend && step.peer == 4) {
            sent.push_back(step.blocks);
        }
    }
    EXPECT_EQ(sent, (std::vector<BlockRange>{{0, 4}, {4, 4}}));
}

TEST(HierarchicalTest, AnOwnersSliceIsReducedByOneFusedGroup)
{
    const Schedule owner = build_hierarchical(2, nodes_of({4}), {});
    std::vector<int> peers;
    std::vector<bool> fused;
    for (const Step &step : owner.steps) {
        if (step.kind == StepKind::kRecvReduce) {
            peers.push_back(step.peer);
            fused.push_back(step.fused);
        }
    }
    EXPECT_EQ(peers, (std::vector<int>{1, 0, 3}));
    EXPECT_EQ(fused, (std::vector<bool>{false, true, true}));
}

TEST(HierarchicalTest, ARankThatSharesItsGpuTalksToItsLeaderOnly)
{
    const Groups groups{{{{0, 2, 4}, {1, 3}}, {{5}}}};
    for (const auto &[rank, leader] : {std::pair(2, 0), {4, 0}, {3, 1}}) {
        const Schedule schedule = build_hierarchical(rank, groups, {.segments = 2});
        ASSERT_EQ(schedule.steps.size(), 4u) << "there and back, for two segments";
        for (const Step &step : schedule.steps) {
            EXPECT_EQ(step.peer, leader) << "rank " << rank;
        }
    }
}

TEST(HierarchicalTest, EachSegmentHasAChannelAndBlocksOfItsOwn)
{
    for (const Schedule &schedule : build_all(uneven_groups(11), Algorithm::kRing, 4)) {
        EXPECT_EQ(schedule.channel_count, 4);
        ASSERT_EQ(schedule.block_count % 4, 0);
        const int blocks = schedule.block_count / 4;
        for (const Step &step : schedule.steps) {
            EXPECT_EQ(step.blocks.first / blocks, step.channel);
            EXPECT_EQ((step.blocks.first + step.blocks.count - 1) / blocks, step.channel);
        }
    }
}

TEST(HierarchicalTest, AScheduleIsReadable)
{
    EXPECT_EQ(print_schedule(build_hierarchical(0, nodes_of({3, 2}), {})),
              "6 blocks, 12 steps: sends 6 messages with 10 blocks, reduces 5 blocks\n"
              "step  kind         peer  blocks     operand  after\n"
              "   0  send            1  2-3        input    -\n"
              "   1  send            2  4-5        input    -\n"
              "   2  recv_reduce     2  0-1        input    -\n"
              "   3    +reduce       1  0-1        result   2\n"
              "   4  send            3  0          result   3\n"
              "   5  recv_reduce     3  1          result   3\n"
              "   6  send            3  1          result   5\n"
              "   7  recv            3  0          -        4\n"
              "   8  send            1  0-1        result   5 7\n"
              "   9  recv            2  4-5        -        1\n"
              "  10  send            2  0-1        result   5 7\n"
              "  11  recv            1  2-3        -        0\n");
}

} // namespace
} // namespace hetcoll::test
