#include "engine/communicator/aggregator_messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hetcoll {
namespace {

// Notes who is asked for what; every message has the answer that it is told.
struct Table {
    std::string log;
    int starts = 0, ends = 0; // what isend and irecv, and what test answers
    int made = 0;             // its address is every request

    [[nodiscard]] hetcoll_p2p table(int size)
    {
        return {
            .context = this,
            .rank = 0,
            .size = size,
            .isend = [](void *context, const void * /*buffer*/, std::size_t /*bytes*/, int peer,
                        int tag,
                        void **request) { return of(context).start('s', peer, tag, request); },
            .irecv = [](void *context, void * /*buffer*/, std::size_t /*bytes*/, int peer, int tag,
                        void **request) { return of(context).start('r', peer, tag, request); },
            .test =
                [](void *context, void **request) {
                    EXPECT_EQ(*request, &of(context).made);
                    return of(context).ends;
                },
            .progress = [](void *context) { of(context).log += "progress "; },
            .shares_processor = 0,
            .comm_id = 0,
            .broken = nullptr,
            .end_job = nullptr,
        };
    }

private:
    static Table &of(void *context) { return *static_cast<Table *>(context); }
    int start(char what, int peer, int tag, void **request)
    {
        log += what + std::to_string(peer) + "/" + std::to_string(tag) + " ";
        *request = &made;
        return starts;
    }
};

class AggregatorMessagesTest : public ::testing::Test {
protected:
    static constexpr int kRanks = 4, kAggregator = kRanks + 1;

    AggregatorMessagesTest() { messages_.connect(aggregator_.table(2), 3); }

    void *send(int peer)
    {
        void *request = nullptr;
        const hetcoll_p2p &table = messages_.table();
        EXPECT_EQ(table.isend(table.context, nullptr, 8, peer, 7, &request), 0);
        return request;
    }
    void *receive(int peer)
    {
        void *request = nullptr;
        const hetcoll_p2p &table = messages_.table();
        EXPECT_EQ(table.irecv(table.context, nullptr, 8, peer, 6, &request), 0);
        return request;
    }
    int test(void *request) { return messages_.table().test(messages_.table().context, &request); }

    Table ranks_, aggregator_;
    const hetcoll_p2p ranks_table_ = ranks_.table(kRanks);
    AggregatorMessages messages_{ranks_table_};
};

TEST_F(AggregatorMessagesTest, GoToTheRanksAndToTheAggregator)
{
    send(2);
    receive(kAggregator);
    send(kAggregator);
    receive(0);
    EXPECT_EQ(ranks_.log, "s2/7 r0/6 ");
    EXPECT_EQ(aggregator_.log, "r3/6 s3/7 ");
}

TEST_F(AggregatorMessagesTest, EndWhenTheirOwnTableSaysSo)
{
    void *const near = send(2), *const far = receive(kAggregator);
    EXPECT_EQ(test(near), 0);
    EXPECT_EQ(test(far), 0);
    ranks_.ends = 1;
    EXPECT_EQ(test(far), 0);
    EXPECT_EQ(test(near), 1);
    aggregator_.ends = 1;
    EXPECT_EQ(test(far), 1);
    EXPECT_TRUE(messages_.connected());
}

TEST_F(AggregatorMessagesTest, OfALostAggregatorEndWhileThoseOfRanksGoOn)
{
    void *const near = send(2), *const sent = send(kAggregator);
    aggregator_.ends = -1;
    EXPECT_EQ(test(sent), 1);
    EXPECT_FALSE(messages_.connected());
    aggregator_.log.clear();
    EXPECT_EQ(test(receive(kAggregator)), 1);
    EXPECT_EQ(aggregator_.log, ""); // it is not asked again
    EXPECT_EQ(test(near), 0);
}

// Its memory is the connection's until then.
TEST_F(AggregatorMessagesTest, OfALostAggregatorThatAreOnTheirWayEndWithTheConnection)
{
    void *const sent = send(kAggregator);
    messages_.disconnect();
    EXPECT_EQ(test(sent), 0);
    aggregator_.ends = -1;
    EXPECT_EQ(test(sent), 1);
}

TEST_F(AggregatorMessagesTest, OfAnAggregatorThatTakesNoneAreLost)
{
    aggregator_.starts = -1;
    EXPECT_EQ(test(send(kAggregator)), 1);
    EXPECT_FALSE(messages_.connected());
}

TEST_F(AggregatorMessagesTest, OfRanksThatFailAreFailures)
{
    void *const near = receive(1);
    ranks_.ends = -5;
    EXPECT_EQ(test(near), -5);
    ranks_.starts = -6;
    void *request = nullptr;
    const hetcoll_p2p &table = messages_.table();
    EXPECT_EQ(table.isend(table.context, nullptr, 8, 1, 7, &request), -6);
    EXPECT_TRUE(messages_.connected());
}

} // namespace
} // namespace hetcoll
