// Prices that calls are chosen by: nothing that can run goes by another rule.
#include "choice/call_prices.h"
#include "machine/assumed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

PricedMachine eight_gpus()
{
    return paper_machine({.gpus = 8, .gpu_gbps = 50, .node_gbps = 12.5, .step_us = 10});
}

CallPrices prices_of(PricedMachine machine)
{
    return CallPrices([found = std::move(machine)] { return found; });
}

Query query_of(const PricedMachine &machine, std::size_t bytes)
{
    Query query = machine.ranks.query;
    query.bytes = bytes;
    query.available = at_size(query.available, bytes, 8 * kKiB, true);
    return query;
}

// The choice costs no more than the best of the others, each with its own best chunk, but for
// what makes a chunk and a radix worthwhile.
void expect_the_least(CallPrices &prices, const Query &query, const CallPrices::Means &means,
                      const std::string &what)
{
    const Choice choice = prices.choose(query, nullptr, means);
    const double us = prices.us_alone(choice.algorithm, query.bytes, means.mapped);
    ASSERT_TRUE(contains(allowed(query), choice.algorithm)) << what;
    ASSERT_TRUE(us > 0 && std::isfinite(us)) << what;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (contains(allowed(query), algorithm)) {
            const double other = prices.us_alone(algorithm, query.bytes, means.mapped);
            EXPECT_TRUE(other == 0 || us < 1.05 * other)
                << what << " " << query.bytes << ": " << algorithm_name(choice.algorithm) << " "
                << us << ", " << algorithm_name(algorithm) << " " << other;
        }
    }
}

TEST(CallPricesTest, TheLeastPriceDecidesMappedAndMixedAndReproducible)
{
    const PricedMachine whole = eight_gpus();
    PricedMachine shared =
        paper_machine({.nodes = 2, .gpus = 2, .gpu_gbps = 50, .node_gbps = 12.5, .step_us = 10});
    shared.ranks = place_ranks(shared.cluster, {2, 2});
    for (const auto &[machine, name] : {std::pair{whole, "a GPU each"}, {shared, "shared GPUs"}}) {
        CallPrices prices = prices_of(machine);
        for (const std::size_t bytes : {12'000ul, 200'000ul, 3 * kMiB}) {
            Query query = query_of(machine, bytes);
            expect_the_least(prices, query, {}, std::string(name) + ", mapped");
            query.reproducible = true;
            expect_the_least(prices, query, {}, std::string(name) + ", reproducible");
            query.reproducible = false;
            query.available = at_size(kMessageAlgorithms, bytes, 8 * kKiB, true);
            expect_the_least(prices, query, {.mapped = false}, std::string(name) + ", mixed");
        }
    }
}

TEST(CallPricesTest, HostCopyingIsPricedForMixedMemoryToo)
{
    const std::vector<int> one_node(4);
    CallPrices prices = prices_of(assumed_machine(one_node));
    Query query{.bytes = 12'000, .ranks = 4};
    query.available = at_size(kMessageAlgorithms, query.bytes, 8 * kKiB, true);
    EXPECT_EQ(prices.choose(query, nullptr, {.mapped = false}).algorithm, Algorithm::kHost);
}

// Between two sizes it may be the best that is not near the best at the larger one.
TEST(CallPricesTest, HostCopyingHasAPriceAtAllSizesThatItServes)
{
    const PricedMachine machine = eight_gpus();
    Prices prices(machine.cluster, machine.ranks);
    const AlgorithmSet set = prices.set();
    for (int size = 0; PriceTable::bytes_of(size) <= kMostHostBytes; ++size) {
        const PriceTable::Column column = prices.of_size(size, set);
        const float us = column[static_cast<std::size_t>(Algorithm::kHost)].us;
        EXPECT_TRUE(us > 0 && std::isfinite(us)) << PriceTable::bytes_of(size) << ": " << us;
    }
}

TEST(CallPricesTest, SmallVectorsGoByTheProcessorWhereItMapsThem)
{
    for (const bool by_cpu : {false, true}) {
        PricedMachine machine = eight_gpus();
        machine.ranks.query.links.by_cpu = by_cpu;
        CallPrices prices = prices_of(machine);
        for (const std::size_t bytes : {8ul, 256ul}) {
            const Query query = query_of(machine, bytes);
            const Algorithm chosen = prices.choose(query, nullptr, {}).algorithm;
            EXPECT_EQ(chosen == Algorithm::kHost, by_cpu) << bytes << algorithm_name(chosen);
        }
        const Query large = query_of(machine, 16 * kKiB);
        EXPECT_NE(prices.choose(large, nullptr, {}).algorithm, Algorithm::kHost);
    }
}

// The others' prices are those of the same machine, and so are what a rank alone finds.
TEST(CallPricesTest, WhatTheRanksHaveToldIsWhatOneFindsAlone)
{
    const PricedMachine machine = eight_gpus();
    Prices found(machine.cluster, machine.ranks);
    PriceTable told;
    for (int size = 0; size < PriceTable::kSizes; ++size) {
        told.column(size) = found.of_size(size, told_of(found.set()));
    }
    CallPrices prices = prices_of(machine);
    for (const std::size_t bytes : {12'000ul, 200'000ul, 3 * kMiB, 200 * kMiB}) {
        const Query query = query_of(machine, bytes);
        const Choice by_told = prices.choose(query, nullptr, {.told = &told});
        const double us = prices.table().us(by_told.algorithm, bytes);
        const Choice alone = prices.choose(query, nullptr, {});
        EXPECT_EQ(by_told.algorithm, alone.algorithm);
        EXPECT_EQ(by_told.chunk_bytes, alone.chunk_bytes);
        EXPECT_EQ(us, prices.table().us(alone.algorithm, bytes));
    }
}

TEST(CallPricesTest, WhatIsForcedHasAPriceHoweverFarFromTheBest)
{
    const PricedMachine machine = eight_gpus();
    CallPrices prices = prices_of(machine);
    Query query = query_of(machine, 16 * kKiB);
    (void)prices.choose(query, nullptr, {});
    EXPECT_TRUE(std::isinf(prices.table().us(Algorithm::kRing, query.bytes)));
    query.forced = Algorithm::kRing;
    EXPECT_EQ(prices.choose(query, nullptr, {}).algorithm, Algorithm::kRing);
    const double us = prices.table().us(Algorithm::kRing, query.bytes);
    EXPECT_GT(us, 0);
    EXPECT_EQ(us, prices.us_alone(Algorithm::kRing, query.bytes, true));
}

// One vector there and one back, where a ring sends nearly two.
TEST(CallPricesTest, AggregatorsThatAreJoinedLaterHaveAPrice)
{
    const PricedMachine machine =
        paper_machine({.nodes = 4, .gpus = 1, .gpu_gbps = 50, .node_gbps = 0.125, .step_us = 13});
    CallPrices prices = prices_of(machine);
    Query query = query_of(machine, 16 * kMiB);
    query.forced = Algorithm::kRing;
    EXPECT_EQ(prices.choose(query, nullptr, {}).algorithm, Algorithm::kRing);
    query.forced.reset();
    query.aggregators = 1;
    query.available |= bit(Algorithm::kInNetwork);
    for (const bool mapped : {true, false}) {
        EXPECT_EQ(prices.choose(query, nullptr, {.mapped = mapped}).algorithm,
                  Algorithm::kInNetwork);
    }
}

TEST(CallPricesTest, SharesPayWhereARankIsLate)
{
    const PricedMachine machine =
        paper_machine({.gpus = 8, .gpu_gbps = 8, .node_gbps = 8, .step_us = 10});
    CallPrices prices = prices_of(machine);
    Query query = query_of(machine, 64 * kMiB);
    query.available |= bit(Algorithm::kWeighted);
    CallPrices::Means means{.shares = {0, 1, 1, 1, 1, 1, 1, 1}, .late = 0, .late_us = 1};
    EXPECT_NE(prices.choose(query, nullptr, means).algorithm, Algorithm::kWeighted);
    const double in_time_us = prices.table().us(Algorithm::kWeighted, query.bytes);
    means.late_us = 1e6;
    EXPECT_EQ(prices.choose(query, nullptr, means).algorithm, Algorithm::kWeighted);
    const double late_us = prices.table().us(Algorithm::kWeighted, query.bytes);
    EXPECT_GT(late_us, 0.4 * in_time_us) << "the late rank's own vector has to move";
    EXPECT_LT(late_us, 0.8 * in_time_us);
}

} // namespace
} // namespace hetcoll
