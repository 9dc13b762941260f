// coll_hetcoll_accumulate: which calls keep a sum of half and bfloat16 in float, and round it once.
#include "cuda_kernels/numbers.h"
#include "test/unit/engine_communicators.h"

namespace hetcoll::test {
namespace {

using Halves = std::vector<std::uint16_t>;

constexpr std::size_t kFew = 100, kMany = 20000; // below and above the small limit

std::uint16_t half_of(float number)
{
    Half half;
    narrow(number, half);
    return half.bits;
}

// 2048 + 1 + 1 - 2048 is 2. Rounded after every addition in the order of the ranks it is 0, and in
// pairs 1.
constexpr float kOfRank[] = {2048, 1, 1, -2048};
constexpr int kRanks = 4;

hetcoll_settings settings_of(const char *algorithm, int accumulate, bool reproducible = false)
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = algorithm;
    settings.accumulate = accumulate;
    settings.reproducible = reproducible;
    return settings;
}

class AccumulateTest : public ::testing::Test {
protected:
    // The sum of the ranks' numbers, which is the same in every element of every rank.
    static float sum(const hetcoll_settings &settings, Where where, std::size_t count,
                     hetcoll_counter served)
    {
        Communicators ranks(kRanks, settings);
        ranks.find_peers();
        std::deque<Numbers<std::uint16_t>> vectors;
        const std::uint64_t before = ranks.counter(0, served);
        for (int rank = 0; rank < kRanks; ++rank) {
            vectors.emplace_back(where, Halves(count, half_of(kOfRank[rank])));
            ranks.call(rank, vectors[rank].data(), vectors[rank].data(), count);
            hetcoll_call &call = ranks.made(rank);
            call.kind = HETCOLL_FLOAT16;
            call.span = 2 * count;
            call.user_op = 2;
        }
        EXPECT_TRUE(ranks.run());
        EXPECT_EQ(ranks.counter(0, served), before + 1) << settings.algorithm;
        const std::uint16_t first = vectors[0].read()[0];
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_EQ(ranks.result(rank), HETCOLL_SUCCESS);
            EXPECT_EQ(vectors[rank].read(), Halves(count, first)) << settings.algorithm << rank;
        }
        return widen(Half{first});
    }
};

struct Way {
    const char *algorithm;
    std::size_t count;
    hetcoll_counter served;
};
constexpr Way kAtOnce[] = {
    {"one_shot", kMany, HETCOLL_CALLS_ONE_SHOT}, {"two_shot", kMany, HETCOLL_CALLS_TWO_SHOT},
    {"leader", kMany, HETCOLL_CALLS_LEADER},     {"copy_in", kFew, HETCOLL_CALLS_COPY_IN},
    {"one_shot", kFew, HETCOLL_CALLS_ONE_SHOT},  {"host", kFew, HETCOLL_CALLS_HOST}};

TEST_F(AccumulateTest, WhatAddsAllNumbersAtOnceRoundsOnce)
{
    for (const Way &way : kAtOnce) {
        EXPECT_EQ(sum(settings_of(way.algorithm, HETCOLL_ACCUMULATE_FLOAT), Where::kDevice,
                      way.count, way.served),
                  2)
            << way.algorithm;
    }
}

TEST_F(AccumulateTest, ByElementEveryAdditionIsRounded)
{
    for (const Way &way : kAtOnce) {
        EXPECT_EQ(sum(settings_of(way.algorithm, HETCOLL_ACCUMULATE_ELEMENT), Where::kDevice,
                      way.count, way.served),
                  0)
            << way.algorithm;
    }
}

TEST_F(AccumulateTest, HostMemoryIsAddedAsDeviceMemoryIs)
{
    EXPECT_EQ(
        sum(settings_of("host", HETCOLL_ACCUMULATE_FLOAT), Where::kHost, kFew, HETCOLL_CALLS_HOST),
        2);
    EXPECT_EQ(sum(settings_of("host", HETCOLL_ACCUMULATE_ELEMENT), Where::kHost, kFew,
                  HETCOLL_CALLS_HOST),
              0);
}

TEST_F(AccumulateTest, MessagesAreAddedTwoAtATime)
{
    EXPECT_EQ(sum(settings_of("recursive_doubling", HETCOLL_ACCUMULATE_FLOAT), Where::kDevice,
                  kMany, HETCOLL_CALLS_RECURSIVE_DOUBLING),
              1);
}

TEST_F(AccumulateTest, ReproducibleSumsAreRoundedAfterEveryAddition)
{
    for (const Way &way : kAtOnce) {
        EXPECT_EQ(sum(settings_of(way.algorithm, HETCOLL_ACCUMULATE_FLOAT, true), Where::kDevice,
                      way.count, way.served),
                  0)
            << way.algorithm;
    }
}

TEST_F(AccumulateTest, OnlySumsOfHalfAndBfloat16AreKeptInFloat)
{
    Communicators ranks(1, default_settings());
    const auto op_of = [&](int op, int kind) {
        hetcoll_call call{};
        call.op = op;
        call.kind = kind;
        return ranks.comm(0).agreed().op_of(call);
    };
    EXPECT_EQ(op_of(HETCOLL_SUM, HETCOLL_FLOAT16), ReduceOp::kSumOnce);
    EXPECT_EQ(op_of(HETCOLL_SUM, HETCOLL_BFLOAT16), ReduceOp::kSumOnce);
    EXPECT_EQ(op_of(HETCOLL_PROD, HETCOLL_FLOAT16), ReduceOp::kProd);
    EXPECT_EQ(op_of(HETCOLL_SUM, HETCOLL_FLOAT32), ReduceOp::kSum);
    EXPECT_EQ(op_of(HETCOLL_SUM, -1), ReduceOp::kSum) << "this rank does not know the op";
}

} // namespace
} // namespace hetcoll::test
