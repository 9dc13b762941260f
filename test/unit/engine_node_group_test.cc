#include "engine/meeting/node_group.h"

#include "engine_nodes.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstring>

namespace hetcoll {
namespace {

using test::Nodes;
using Ranks = std::vector<int>;

TEST(NodeGroup, FindsTheRanksOfItsNodeAndTheirLeaders)
{
    const Nodes nodes({7, 2, 7, 5, 2, 7});
    for (int rank = 0; rank < nodes.size(); ++rank) {
        const NodeGroup &group = *nodes.group[rank];
        EXPECT_EQ(group.nodes(), 3);
        EXPECT_EQ(group.most_ranks_on_a_node(), 3);
        EXPECT_EQ(group.least_ranks_on_a_node(), 1);
        for (int other = 0; other < nodes.size(); ++other) { // numbered by their first ranks
            EXPECT_EQ(group.node_of(other), (Ranks{0, 1, 0, 2, 1, 0}[other]));
        }
    }
    EXPECT_EQ(nodes.group[5]->local_ranks(), (Ranks{0, 2, 5}));
    EXPECT_EQ(nodes.group[5]->local_rank(), 2);
    EXPECT_FALSE(nodes.group[5]->is_leader());
    EXPECT_EQ(nodes.group[1]->local_ranks(), (Ranks{1, 4}));
    EXPECT_TRUE(nodes.group[1]->is_leader());
    EXPECT_EQ(nodes.group[3]->leaders().rank, 2);
    EXPECT_EQ(nodes.group[3]->leaders().size, 3);
}

class PagesTest : public ::testing::TestWithParam<Ranks> {}; // the node of each rank

TEST_P(PagesTest, RanksOfANodeShareAPageWithTheirNodeAlone)
{
    Nodes nodes(GetParam());
    ASSERT_TRUE(nodes.make_pages());
    EXPECT_EQ(nodes.network.unmatched(), 0);
    for (int rank = 0; rank < nodes.size(); ++rank) {
        NodeGroup &group = *nodes.group[rank];
        EXPECT_TRUE(group.uses_pages());
        EXPECT_FALSE(group.settings_differ());
        EXPECT_EQ(group.page().exists(), group.local_size() > 1);
        if (group.page().exists()) {
            EXPECT_EQ(group.own_slot().arrived.load(), 0u);
            group.own_slot().arrived.store(static_cast<std::uint32_t>(100 + rank));
        }
    }
    for (const auto &group : nodes.group) {
        for (int i = 0; group->page().exists() && i < group->local_size(); ++i) {
            EXPECT_EQ(group->slot(i).arrived.load(),
                      static_cast<std::uint32_t>(100 + group->local_ranks()[i]));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Nodes, PagesTest,
                         ::testing::Values(Ranks{0, 0}, Ranks{0, 0, 0, 0}, Ranks{0, 1, 1},
                                           Ranks{0, 0, 1, 1, 2}, Ranks{2, 0, 1, 0, 3, 1, 0}));

TEST_P(PagesTest, NobodyHasAPageBeforeAllRanksAreAbleToBegin)
{
    Nodes nodes(GetParam());
    for (int unable = 0; unable < nodes.size(); ++unable) {
        RollCall roll_call;
        roll_call.start(nodes.p2p[unable], 1);
        std::vector<Progress> progress(nodes.group.size(), Progress::kPending);
        for (int turn = 0; turn < 10000; ++turn) {
            for (int rank = 0; rank < nodes.size(); ++rank) {
                if (progress[rank] == Progress::kPending) {
                    progress[rank] =
                        rank == unable ? roll_call.step() : nodes.group[rank]->make_pages(1);
                }
            }
            nodes.network.rank(0).progress(nodes.network.rank(0).context);
        }
        EXPECT_EQ(progress, std::vector<Progress>(nodes.group.size(), Progress::kDone));
        EXPECT_EQ(nodes.network.unmatched(), 0);
        for (int rank = 0; rank < nodes.size(); ++rank) {
            EXPECT_FALSE(nodes.group[rank]->all_are_able());
            EXPECT_FALSE(nodes.group[rank]->page().exists());
        }
    }
    ASSERT_TRUE(nodes.make_pages());
    for (const auto &group : nodes.group) {
        EXPECT_TRUE(group->all_are_able());
        EXPECT_TRUE(group->uses_pages());
    }
}

TEST(NodeGroup, HasNoPageWhereEveryRankIsAlone)
{
    for (const Ranks &hosts : {Ranks{0}, Ranks{0, 1}, Ranks{2, 1, 0}}) {
        Nodes nodes(hosts);
        ASSERT_TRUE(nodes.make_pages());
        for (const auto &group : nodes.group) {
            EXPECT_FALSE(group->page().exists());
            EXPECT_FALSE(group->uses_pages());
        }
    }
}

// hetcoll_info --live reads it; whether there is one changes nothing for the ranks.
TEST(NodeGroup, ARankAloneOnItsNodeHasAPageForOnlookersIfItMay)
{
    for (const Ranks &hosts : {Ranks{0, 1}, Ranks{0, 0, 1}}) {
        Nodes nodes(hosts);
        NodeGroup &alone = *nodes.group.back();
        alone.leave_page_open();
        ASSERT_TRUE(nodes.make_pages());
        EXPECT_EQ(nodes.network.unmatched(), 0);
        EXPECT_EQ(alone.uses_pages(), hosts.size() == 3);
        EXPECT_EQ(nodes.group[0]->uses_pages(), hosts.size() == 3);
        ASSERT_TRUE(alone.page().exists());
        EXPECT_EQ(alone.own_slot().who.rank, static_cast<int>(hosts.size()) - 1);
        EXPECT_EQ(alone.own_slot().who.node_ranks, 1);
        EXPECT_TRUE(alone.may_touch_peers());
        EXPECT_TRUE(alone.leave());
    }
}

// The second node's leader names another process than itself, which its other rank cannot find.
TEST(NodeGroup, NobodyUsesPagesWhenOneRankCannotAttach)
{
    Nodes nodes({0, 0, 1, 1, 2});
    std::vector<ProcessIdentity> wrong = nodes.processes;
    wrong[2].start_time += 1;
    nodes.group[2] = std::make_unique<NodeGroup>(nodes.p2p[2], wrong, 0);
    ASSERT_TRUE(nodes.make_pages());
    for (int rank = 0; rank < nodes.size(); ++rank) {
        EXPECT_FALSE(nodes.group[rank]->uses_pages());
        EXPECT_FALSE(nodes.group[rank]->page().exists());
        EXPECT_EQ(nodes.group[rank]->problem().take().ok(), rank != 3) << rank;
    }
    EXPECT_EQ(nodes.network.unmatched(), 0);
}

// Two pages are what this process may have, and a third may take the place of one that went.
TEST(NodeGroup, NobodyUsesPagesWhenARanksShareOfSharedMemoryIsSpent)
{
    const std::size_t page = ShmBudget::part(ControlPage::bytes(2), 2);
    ShmBudget all(1);
    ShmBudget budget(static_cast<int>(all.limit() / (5 * page / 2)));
    const auto make = [&] {
        auto nodes = std::make_unique<Nodes>(Ranks{0, 0, 1});
        nodes->group[1] = std::make_unique<NodeGroup>(nodes->p2p[1], nodes->processes, 0, &budget);
        EXPECT_TRUE(nodes->make_pages());
        EXPECT_EQ(nodes->network.unmatched(), 0);
        EXPECT_EQ(nodes->group[0]->uses_pages(), nodes->group[1]->uses_pages());
        EXPECT_EQ(nodes->group[2]->uses_pages(), nodes->group[1]->uses_pages());
        return nodes;
    };
    const auto first = make();
    auto second = make();
    EXPECT_TRUE(first->group[1]->uses_pages());
    EXPECT_TRUE(second->group[1]->uses_pages());
    for (int i = 0; i < 2; ++i) {
        const auto third = make();
        EXPECT_FALSE(third->group[1]->uses_pages());
        EXPECT_TRUE(third->group[1]->problem().take().ok());
        EXPECT_TRUE(third->group[0]->problem().take_shortage());
        EXPECT_FALSE(third->group[1]->problem().take_shortage());
    }
    second.reset();
    EXPECT_TRUE(make()->group[1]->uses_pages());
}

TEST(NodeGroup, EveryRankLearnsThatSettingsDiffer)
{
    for (const Ranks &hosts : {Ranks{0, 0, 0}, Ranks{0, 1, 1}, Ranks{0, 1, 2}}) {
        for (const int other : {-1, 0, 2}) {
            std::vector<std::uint64_t> settings(3, 0x500000007);
            if (other >= 0) {
                settings[other] = 0x500000003;
            }
            Nodes nodes(hosts, settings);
            ASSERT_TRUE(nodes.make_pages());
            for (const auto &group : nodes.group) {
                EXPECT_EQ(group->settings_differ(), other >= 0);
            }
        }
    }
}

// A rank that is alone on its node has none, and after a network failure a rank gives its own up.
TEST(NodeGroup, ARankWithoutAPageAsksNobodyWhetherItMayTouchPeers)
{
    Nodes alone({0, 1}), together({0, 0});
    ASSERT_TRUE(alone.make_pages());
    ASSERT_TRUE(together.make_pages());
    together.group[0]->abandon_page();
    for (NodeGroup *group : {alone.group[0].get(), together.group[0].get()}) {
        ASSERT_FALSE(group->page().exists());
        EXPECT_TRUE(group->may_touch_peers());
        group->touches_no_peers();
    }
    EXPECT_TRUE(together.group[1]->may_touch_peers());
}

TEST(NodeGroup, NobodyWaitsForTheGpuOfARankThatHasGivenUpItsPage)
{
    Nodes nodes({0, 0});
    ASSERT_TRUE(nodes.make_pages());
    EXPECT_TRUE(nodes.group[0]->may_touch_peers());
    EXPECT_FALSE(nodes.group[1]->leave());
    nodes.group[0]->abandon_page();
    EXPECT_TRUE(nodes.group[1]->leave());
}

// In a child, which has no descriptor left to look at the ranks with.
TEST(NodeGroup, ARankThatCannotBeLookedAtIsWaitedForWhileItsGpuWorks)
{
    Nodes nodes({0, 0});
    ASSERT_TRUE(nodes.make_pages());
    const pid_t child = fork();
    if (child == 0) {
        const rlimit none{.rlim_cur = 0, .rlim_max = 0};
        setrlimit(RLIMIT_NOFILE, &none);
        const bool waits = nodes.group[0]->may_touch_peers() && !nodes.group[1]->leave();
        nodes.group[0]->touches_no_peers();
        _exit(waits && nodes.group[1]->leave() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

// Sets rank 0's counters to 77, has it ask for `words` counters one after the other in its call,
// and announces its next one: returns the counters as rank 1 sees them then.
std::vector<std::uint64_t> announced_after(const std::vector<int> &words)
{
    Nodes nodes({0, 0});
    EXPECT_TRUE(nodes.make_pages());
    for (const int count : words) {
        static_cast<void>(nodes.group[0]->take_progress(count));
    }
    auto &progress = nodes.group[0]->own_slot().progress;
    std::fill(std::begin(progress), std::end(progress), 77);
    nodes.group[0]->announce({}, {});
    const auto &seen = nodes.group[1]->slot(0).progress;
    return {std::begin(seen), std::end(seen)};
}

std::vector<std::uint64_t> cleared(std::size_t words)
{
    std::vector<std::uint64_t> all(ControlPage::kWords, 77);
    std::fill_n(all.begin(), words, 0);
    return all;
}

TEST(NodeGroup, TheCountersOfTheScheduleBeforeAreClearedAndNoOthers)
{
    EXPECT_EQ(announced_after({5}), cleared(5));
    EXPECT_EQ(announced_after({ControlPage::kWords}), cleared(ControlPage::kWords));
}

TEST(NodeGroup, TheMostCountersAreClearedIfACallHasStartedTwice)
{
    EXPECT_EQ(announced_after({8, 3}), cleared(8));
    EXPECT_EQ(announced_after({3, 8}), cleared(8));
}

TEST(NodeGroup, NoCounterIsClearedWhereNoScheduleHasRun)
{
    EXPECT_EQ(announced_after({}), cleared(0));
}

TEST(NodeGroup, CountersAreClearedOnce)
{
    Nodes nodes({0, 0});
    ASSERT_TRUE(nodes.make_pages());
    std::atomic<std::uint64_t> &counter = *nodes.group[0]->take_progress(1);
    nodes.group[0]->announce({}, {});
    counter = 77;
    nodes.group[0]->announce({}, {});
    EXPECT_EQ(counter, 77u);
}

TEST(NodeGroup, ReportsTheCodeOfAFailedSend)
{
    Nodes nodes({0, 0});
    nodes.network.fail_send(1);
    EXPECT_EQ(nodes.group[1]->make_pages(1), Progress::kFailed);
    EXPECT_EQ(nodes.group[1]->code(), -7);
}

} // namespace
} // namespace hetcoll
