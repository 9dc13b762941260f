// Messages of a communicator that breaks: who waits for one is not told by it, and the last one's
// end is seen.
#include "engine/communicator/open_requests.h"
#include "test/unit/memory_network.h"

#include <gtest/gtest.h>

#include <optional>

namespace hetcoll::test {
namespace {

constexpr int kTag = 3, kCode = -77;

class OpenRequestsTest : public ::testing::Test {
protected:
    OpenRequestsTest() { network_.may_break(); }
    void *receive()
    {
        void *request = nullptr;
        const hetcoll_p2p &table = requests_->table();
        EXPECT_EQ(table.irecv(table.context, &number_, sizeof number_, 1, kTag, &request), 0);
        return request;
    }
    int test(void *&request)
    {
        const hetcoll_p2p &table = requests_->table();
        return table.test(table.context, &request);
    }
    void send()
    {
        const hetcoll_p2p peer = network_.rank(1);
        const int sent = 5;
        void *request = nullptr;
        ASSERT_EQ(peer.isend(peer.context, &sent, sizeof sent, 0, kTag, &request), 0);
        while (peer.test(peer.context, &request) == 0) {
            peer.progress(peer.context);
        }
    }
    void make() { requests_.emplace(network_.rank(0)); }

    MemoryNetwork network_{2, true, 1};
    std::optional<OpenRequests> requests_;
    int number_ = 0;
};

TEST_F(OpenRequestsTest, MessagesArriveAsWithoutIt)
{
    make();
    void *request = receive();
    EXPECT_EQ(test(request), 0);
    send();
    EXPECT_EQ(test(request), 1);
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(number_, 5);
}

TEST_F(OpenRequestsTest, ARequestThatFailsForTheBreakLooksPending)
{
    make();
    void *request = receive();
    network_.break_for(0, kCode);
    network_.end_requests(0);
    EXPECT_EQ(test(request), 0);
    EXPECT_EQ(test(request), 0);
    EXPECT_TRUE(requests_->drain());
}

TEST_F(OpenRequestsTest, ItIsDrainedOnlyWhenTheLastOneHasEnded)
{
    make();
    receive();
    receive();
    network_.break_for(0, kCode);
    EXPECT_FALSE(requests_->drain());
    send(); // one is still on its way, and arrives
    EXPECT_FALSE(requests_->drain());
    network_.end_requests(0);
    EXPECT_TRUE(requests_->drain());
    EXPECT_EQ(network_.unmatched(), 0);
}

TEST_F(OpenRequestsTest, NothingStartsOnceItIsBroken)
{
    make();
    network_.break_for(0, kCode);
    void *request = receive();
    EXPECT_EQ(test(request), 0);
    EXPECT_EQ(network_.unmatched(), 0);
    EXPECT_TRUE(requests_->drain());
}

TEST_F(OpenRequestsTest, TheJobEndsAsWithoutIt)
{
    make();
    const hetcoll_p2p &table = requests_->table();
    table.end_job(table.context, kCode);
    EXPECT_EQ(network_.ended_job(0), kCode);
}

TEST(OpenRequests, CostsNothingWhereRanksDoNotBreak)
{
    MemoryNetwork network(2, true, 1);
    const hetcoll_p2p ranks = network.rank(0);
    const OpenRequests requests(ranks);
    EXPECT_EQ(requests.table().context, ranks.context);
    EXPECT_EQ(requests.table().test, ranks.test);
    EXPECT_EQ(requests.table().broken, nullptr);
}

} // namespace
} // namespace hetcoll::test
