#include "engine/meeting/subgroup.h"

#include "memory_network.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

TEST(Subgroup, NumbersItsRanksInTheOrderGiven)
{
    MemoryNetwork network(5, false, 1);
    const std::vector<int> members = {4, 1, 3};
    for (int rank = 0; rank < 5; ++rank) {
        const hetcoll_p2p parent = network.rank(rank);
        const Subgroup group(parent, members);
        const auto place = std::find(members.begin(), members.end(), rank);
        EXPECT_EQ(group.table().rank,
                  place == members.end() ? -1 : static_cast<int>(place - members.begin()));
        EXPECT_EQ(group.table().size, 3);
        EXPECT_EQ(group.ranks(), members);
    }
}

// Number 0 is rank 4, number 2 rank 3 of the parent.
TEST(Subgroup, ItsMessagesGoToTheRanksThatTheNumbersStandFor)
{
    MemoryNetwork network(5, false, 1);
    const hetcoll_p2p fourth = network.rank(4), third = network.rank(3);
    const Subgroup of_fourth(fourth, {4, 1, 3}), of_third(third, {4, 1, 3});
    const hetcoll_p2p &sender = of_fourth.table(), &receiver = of_third.table();
    int sent = 17, got = 0;
    void *sending = nullptr, *receiving = nullptr;
    ASSERT_EQ(sender.isend(sender.context, &sent, sizeof sent, 2, 9, &sending), 0);
    ASSERT_EQ(receiver.irecv(receiver.context, &got, sizeof got, 0, 9, &receiving), 0);
    int state = 0;
    for (int turn = 0; turn < 1000 && state == 0; ++turn) {
        receiver.progress(receiver.context);
        state = receiver.test(receiver.context, &receiving);
    }
    EXPECT_EQ(state, 1);
    EXPECT_EQ(sender.test(sender.context, &sending), 1);
    EXPECT_EQ(got, 17);
    EXPECT_EQ(network.unmatched(), 0);
}

} // namespace
} // namespace hetcoll
