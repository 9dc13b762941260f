#include "test/unit/aggregator_house.h"
#include "test/unit/cuda_kernels_reference.h"

namespace hetcoll::test {
namespace {

// Whole numbers, so that any order of addition gives the same.
template <class T> std::vector<T> input(int rank, std::size_t count)
{
    std::vector<T> in(count);
    for (std::size_t i = 0; i < count; ++i) {
        in[i] = static_cast<T>((rank + 1) * static_cast<int>(i % 10 + 1));
    }
    return in;
}

template <class T> std::vector<T> sum_of(int ranks, std::size_t count)
{
    std::vector<T> sum(count);
    for (std::size_t i = 0; i < count; ++i) {
        sum[i] = static_cast<T>(ranks * (ranks + 1) / 2 * static_cast<int>(i % 10 + 1));
    }
    return sum;
}

template <class T> std::vector<RankReduction<T>> start_all(House &house, const AggregatorPlan &plan,
                                                           std::size_t count, ReduceOp op,
                                                           ElementKind kind)
{
    std::vector<RankReduction<T>> all;
    int rank = 0;
    for (const auto &client : house.clients) {
        all.emplace_back(*client, plan, input<T>(rank++, count), op, kind);
    }
    return all;
}

template <class T> void expect_sums(House &house, std::vector<RankReduction<T>> &all)
{
    house.settle();
    const int ranks = static_cast<int>(all.size());
    for (RankReduction<T> &one : all) {
        ASSERT_EQ(one.test(), 1);
        EXPECT_EQ(one.out(), sum_of<T>(ranks, one.out().size()));
    }
}

TEST(AggregatorSumsTest, EveryRankHasTheSumOfAll)
{
    for (const int ranks : {1, 2, 3, 8}) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{16}, std::size_t{101}}) {
            House house;
            house.serve(1);
            const AggregatorPlan plan = plan_of(ranks);
            house.join_all(ranks, plan);
            auto all =
                start_all<std::int32_t>(house, plan, count, ReduceOp::kSum, ElementKind::kInt32);
            expect_sums(house, all);
        }
    }
}

TEST(AggregatorSumsTest, OneReductionAfterTheOther)
{
    House house;
    house.serve(1);
    const AggregatorPlan plan = plan_of(3);
    house.join_all(3, plan);
    for (const std::size_t count : {5u, 100u, 1u}) {
        auto all = start_all<double>(house, plan, count, ReduceOp::kSum, ElementKind::kFloat64);
        expect_sums(house, all);
    }
}

Bytes bytes_of(const std::byte *from, std::size_t count)
{
    Bytes bytes(count);
    std::memcpy(bytes.data(), from, count);
    return bytes;
}

TEST(AggregatorSumsTest, EveryOperationOnEveryKindThatMpiDefines)
{
    House house;
    house.serve(1);
    const AggregatorPlan plan = plan_of(2);
    house.join_all(2, plan);
    for (int o = 0; o < kReduceOpCount; ++o) {
        for (int k = 0; k < kElementKindCount; ++k) {
            const auto op = static_cast<ReduceOp>(o);
            const auto kind = static_cast<ElementKind>(k);
            if (!is_defined(op, kind)) {
                continue;
            }
            alignas(16) std::byte in[2][16], out[2][16], want[16];
            std::vector<void *> requests;
            const std::size_t bytes = element_bytes(kind);
            for (int rank = 0; rank < 2; ++rank) {
                std::fill_n(in[rank], 16, static_cast<std::byte>(rank)); // 0 and 1, true and false
                const hetcoll_p2p &p2p = house.clients[rank]->table();
                void *request = nullptr;
                house.clients[rank]->begin(op, kind, 1);
                ASSERT_EQ(p2p.irecv(p2p.context, out[rank], bytes, 2, 0, &request), 0);
                requests.push_back(request);
                ASSERT_EQ(p2p.isend(p2p.context, in[rank], bytes, 2, 0, &request), 0);
                requests.push_back(request);
            }
            house.settle();
            host_reduce(op, kind)(want, in[0], in[1], 1);
            for (int rank = 0; rank < 2; ++rank) {
                const hetcoll_p2p &p2p = house.clients[rank]->table();
                EXPECT_EQ(p2p.test(p2p.context, &requests[2 * rank]), 1);
                EXPECT_EQ(p2p.test(p2p.context, &requests[2 * rank + 1]), 1);
                EXPECT_EQ(first_difference(kind, bytes_of(out[rank], bytes), bytes_of(want, bytes)),
                          -1)
                    << op_name(op) << ' ' << element_name(kind);
            }
        }
    }
}

// 2048 + 1 + 1 - 2048 is 2 in float, and 0 where each addition is rounded to a half.
TEST(AggregatorSumsTest, SumsThatAreRoundedOnceAreKeptInFloatWhoeverComesFirst)
{
    const std::uint16_t values[] = {0x6800, 0x3c00, 0x3c00, 0xe800};
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kSumOnce}) {
        for (const int last : {0, 1, 3}) {
            House house;
            house.serve(1);
            const AggregatorPlan plan = plan_of(4);
            house.join_all(4, plan);
            std::vector<RankReduction<std::uint16_t>> all;
            for (int i = 1; i <= 4; ++i) {
                const int rank = (last + i) % 4;
                all.emplace_back(*house.clients[rank], plan,
                                 std::vector<std::uint16_t>(9, values[rank]), op,
                                 ElementKind::kFloat16);
                house.settle();
            }
            const std::uint16_t sum = op == ReduceOp::kSum ? 0 : 0x4000;
            for (RankReduction<std::uint16_t> &one : all) {
                ASSERT_EQ(one.test(), 1);
                EXPECT_EQ(one.out(), std::vector<std::uint16_t>(9, sum)) << last;
            }
        }
    }
}

// 1e30 - 1e30 + 1 is 1 in this order alone.
TEST(AggregatorSumsTest, FloatsAreAddedInTheOrderOfTheRanksWhoeverComesFirst)
{
    const float values[] = {1e30f, -1e30f, 1, 2};
    for (const int last : {0, 1, 2, 3}) {
        House house;
        house.serve(1);
        const AggregatorPlan plan = plan_of(4);
        house.join_all(4, plan);
        std::vector<RankReduction<float>> all;
        for (int i = 1; i <= 4; ++i) {
            const int rank = (last + i) % 4;
            all.emplace_back(*house.clients[rank], plan, std::vector<float>{values[rank]},
                             ReduceOp::kSum, ElementKind::kFloat32);
            house.settle();
        }
        for (RankReduction<float> &one : all) {
            ASSERT_EQ(one.test(), 1);
            EXPECT_EQ(one.out(), std::vector<float>{3}) << last;
        }
    }
}

TEST(AggregatorSumsTest, NeverMoreInFlightThanTheWindow)
{
    for (const int window : {1, 2, 7}) {
        House house;
        TestServer &server = house.serve(1);
        AggregatorPlan plan = plan_of(2);
        plan.window = window;
        house.join_all(2, plan);
        auto all =
            start_all<std::int32_t>(house, plan, 16 * 20, ReduceOp::kSum, ElementKind::kInt32);
        expect_sums(house, all);
        EXPECT_EQ(server.counters().most_in_flight, window);
        for (const auto &client : house.clients) {
            EXPECT_EQ(client->traffic().most_in_flight, window);
        }
    }
}

TEST(AggregatorSumsTest, ASumThatNobodyHasAskedForKeepsItsPlaceInTheWindow)
{
    House house;
    house.serve(1);
    const AggregatorPlan plan = plan_of(1);
    house.join_all(1, plan);
    AggregatorClient &client = *house.clients[0];
    const hetcoll_p2p &p2p = client.table();
    std::int32_t in[3] = {1, 2, 3}, out = 0;
    client.begin(ReduceOp::kSum, ElementKind::kInt32, 3);
    for (std::int32_t &value : in) {
        void *request = nullptr;
        ASSERT_EQ(p2p.isend(p2p.context, &value, 4, 1, 0, &request), 0);
    }
    house.settle();
    EXPECT_EQ(client.traffic().messages_out, 2u);
    EXPECT_EQ(client.traffic().messages_in, 2u);
    void *request = nullptr;
    ASSERT_EQ(p2p.irecv(p2p.context, &out, 4, 1, 0, &request), 0);
    house.settle();
    EXPECT_EQ(out, 1);
    EXPECT_EQ(client.traffic().messages_out, 3u);
}

TEST(AggregatorSumsTest, TheAggregatorGrantsNoMoreThanItsOwnWindow)
{
    House house;
    TestServer &server = house.serve(1, {.most_window = 3});
    AggregatorPlan plan = plan_of(2);
    plan.window = 100;
    house.join_all(2, plan);
    EXPECT_EQ(house.clients[0]->window(), 3);
    auto all = start_all<std::int32_t>(house, plan, 16 * 20, ReduceOp::kSum, ElementKind::kInt32);
    expect_sums(house, all);
    EXPECT_EQ(server.counters().most_in_flight, 3);
}

TEST(AggregatorSumsTest, AWorkerSendsAndReceivesTheVectorAndTheHeaders)
{
    House house;
    house.serve(1);
    const AggregatorPlan plan = plan_of(4);
    house.join_all(4, plan);
    auto all = start_all<std::int32_t>(house, plan, 100, ReduceOp::kSum, ElementKind::kInt32);
    const std::uint64_t join_out = house.clients[0]->traffic().header_bytes_out - 42 -
                                   12, // the two messages of the window have gone already
        join_in = house.clients[0]->traffic().header_bytes_in;
    expect_sums(house, all);
    for (const auto &client : house.clients) {
        const AggregatorTraffic traffic = client->traffic();
        EXPECT_EQ(traffic.messages_out, 7u); // 16 elements each
        EXPECT_EQ(traffic.messages_in, 7u);
        EXPECT_EQ(traffic.payload_bytes_out, 400u);
        EXPECT_EQ(traffic.payload_bytes_in, 400u);
        EXPECT_EQ(traffic.header_bytes_out, join_out + 42 + 6 * 12);
        EXPECT_EQ(traffic.header_bytes_in, join_in + 7 * 12);
    }
}

// Ranks 0 and 1 at a leaf, 2 to 4 at another, and their spine.
void join_two_leaves(House &house, AggregatorPlan &plan, std::uint32_t spine_window = 64)
{
    house.serve(1, {.most_window = spine_window});
    const ServerOptions leaf{.spine = Endpoint{"host", 1}};
    house.serve(2, leaf);
    house.serve(3, leaf);
    for (plan.rank = 0; plan.rank < 5; ++plan.rank) {
        const bool second = plan.rank >= 2;
        plan.endpoint.port = second ? 3 : 2;
        plan.index = second ? 1 : 0;
        plan.first = second ? 2 : 0;
        plan.count = second ? 3 : 2;
        house.join(plan);
    }
    house.settle();
}

TEST(AggregatorSumsTest, LeavesAddUpAndTheirSpineAddsUpTheLeaves)
{
    AggregatorPlan plan = plan_of(5);
    House house;
    join_two_leaves(house, plan);
    std::vector<RankReduction<std::int32_t>> all;
    for (int rank = 0; rank < 5; ++rank) {
        plan.index = rank >= 2 ? 1 : 0;
        all.emplace_back(*house.clients[rank], plan, input<std::int32_t>(rank, 100), ReduceOp::kSum,
                         ElementKind::kInt32);
    }
    expect_sums(house, all);
    const ServerCounters &spine = house.servers[0]->counters();
    EXPECT_EQ(spine.payload_bytes_in, 2 * 400u); // one vector a leaf, whatever its ranks
    EXPECT_EQ(spine.payload_bytes_out, 2 * 400u);
    EXPECT_EQ(house.servers[2]->counters().payload_bytes_up, 400u);
    EXPECT_EQ(house.servers[2]->counters().payload_bytes_down, 400u);
}

TEST(AggregatorSumsTest, ALeafGrantsNoMoreThanItsSpine)
{
    AggregatorPlan plan = plan_of(5);
    plan.window = 8;
    House house;
    join_two_leaves(house, plan, 3);
    EXPECT_EQ(house.clients[0]->window(), 3);
    EXPECT_EQ(house.clients[4]->window(), 3);
}

TEST(AggregatorSumsTest, SeveralJobsAndCommunicatorsAtOnce)
{
    House house;
    TestServer &server = house.serve(1);
    AggregatorPlan plan = plan_of(2);
    for (const auto &[job, comm] : {std::pair{7, 3}, std::pair{7, 4}, std::pair{8, 3}}) {
        plan.job = static_cast<std::uint64_t>(job);
        plan.comm = static_cast<std::uint32_t>(comm);
        house.join_all(2, plan);
    }
    EXPECT_EQ(server.groups(), 3u);
    std::vector<RankReduction<std::int32_t>> all;
    for (std::size_t i = 0; i < 6; ++i) {
        std::vector<std::int32_t> in(40, static_cast<std::int32_t>(i));
        all.emplace_back(*house.clients[i], plan, in, ReduceOp::kSum, ElementKind::kInt32);
    }
    house.settle();
    for (std::size_t i = 0; i < 6; ++i) {
        ASSERT_EQ(all[i].test(), 1);
        const int first = static_cast<int>(i / 2 * 2);
        EXPECT_EQ(all[i].out(), std::vector<std::int32_t>(40, 2 * first + 1));
    }
}

} // namespace
} // namespace hetcoll::test
