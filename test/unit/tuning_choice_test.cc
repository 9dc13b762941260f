#include "choice/choose.h"

#include "plan/build_schedule.h"
#include "price/price_table.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <ostream>
#include <random>
#include <utility>

namespace hetcoll {

// GoogleTest prints it.
static std::ostream &operator<<(std::ostream &to, Algorithm algorithm)
{
    return to << algorithm_name(algorithm);
}

namespace {

constexpr std::size_t kMiB = 1024 * 1024;
constexpr Algorithm kOfMessages[] = {Algorithm::kRecursiveDoubling, Algorithm::kRabenseifner,
                                     Algorithm::kRing};

// All sizes: each of the set costs the more, the later it is in the list; or the other way round.
PriceTable prices_of(AlgorithmSet set, bool last_is_best = false)
{
    PriceTable table;
    for (int size = 0; size < PriceTable::kSizes; ++size) {
        for (int i = 0; i < kAlgorithmCount; ++i) {
            const bool has = contains(set, static_cast<Algorithm>(i));
            const int us = last_is_best ? kAlgorithmCount - i : 1 + i;
            table.column(size)[static_cast<std::size_t>(i)].us = has ? static_cast<float>(us) : 0;
        }
    }
    return table;
}

// Whatever is available, reproducible or forced.
TEST(ChoiceTest, TheCheapestOfWhatCanRunIsTaken)
{
    std::mt19937_64 random(7);
    const auto whole = [&](int low, int high) {
        return std::uniform_int_distribution(low, high)(random);
    };
    for (int i = 0; i < 20000; ++i) {
        // Up to the largest size that is priced.
        Query query{.bytes = std::size_t{1} << whole(0, 26), .ranks = whole(2, 64)};
        query.nodes = whole(1, query.ranks);
        query.available = static_cast<AlgorithmSet>(whole(0, (1 << kAlgorithmCount) - 1));
        query.reproducible = whole(0, 3) == 0;
        const bool last_is_best = whole(0, 1) == 0;
        const PriceTable table = prices_of(kAllAlgorithms, last_is_best);
        const AlgorithmSet set = allowed(query);
        const Algorithm chosen = choose(query, nullptr, &table).algorithm;
        if (set == 0) {
            ASSERT_EQ(chosen, Algorithm::kHost);
            continue;
        }
        const int best = last_is_best ? std::bit_width(set) - 1 : std::countr_zero(set);
        ASSERT_EQ(chosen, static_cast<Algorithm>(best));
    }
}

TEST(ChoiceTest, WhatHasNoPriceIsTakenOnlyIfNothingHas)
{
    const PriceTable table = prices_of(bit(Algorithm::kRing));
    Query query{.bytes = kMiB, .ranks = 4};
    EXPECT_EQ(choose(query, nullptr, &table).algorithm, Algorithm::kRing);
    EXPECT_EQ(choose(query).algorithm, Algorithm::kRecursiveDoubling) << "the first of the list";
    query.available |= bit(Algorithm::kHost);
    EXPECT_EQ(choose(query).algorithm, Algorithm::kHost);
}

// At two sizes side by side, what is best at one may have been given up at the other.
TEST(ChoiceTest, BetweenSizesWithNothingInCommonTheLargerOneDecides)
{
    constexpr float kNever = std::numeric_limits<float>::infinity();
    PriceTable table;
    const int size = PriceTable::size_below(kMiB);
    const auto set = [&](int at, Algorithm algorithm, float us) {
        table.column(at)[static_cast<std::size_t>(algorithm)].us = us;
    };
    set(size, Algorithm::kRing, 1), set(size, Algorithm::kRabenseifner, kNever);
    set(size + 1, Algorithm::kRing, kNever), set(size + 1, Algorithm::kRabenseifner, 1);
    const Query query{.bytes = kMiB + 4, .ranks = 4};
    EXPECT_EQ(choose(query, nullptr, &table).algorithm, Algorithm::kRabenseifner);
}

TEST(ChoiceTest, ReproducibleCallsTakeOnlyLeftFolds)
{
    const PriceTable table = prices_of(kAllAlgorithms);
    Query query{.bytes = 64 * kMiB, .ranks = 8, .reproducible = true};
    query.available = without(kAllAlgorithms, Algorithm::kHierarchical);
    EXPECT_TRUE(contains(kReproducibleAlgorithms, choose(query, nullptr, &table).algorithm));
    query.forced = Algorithm::kRing;
    EXPECT_TRUE(contains(kReproducibleAlgorithms, choose(query, nullptr, &table).algorithm));
    EXPECT_TRUE(choose(query, nullptr, &table).forced_unavailable);
    query = {.bytes = 16 * kMiB, .ranks = 4, .nodes = 4, .aggregators = 2, .reproducible = true};
    query.available = bit(Algorithm::kOrdered) | bit(Algorithm::kInNetwork);
    EXPECT_EQ(choose(query, nullptr, &table).algorithm, Algorithm::kOrdered);
}

TEST(ChoiceTest, TheChainOfRanksIsForReproducibleCallsAlone)
{
    const PriceTable table = prices_of(kAllAlgorithms, true); // it is the cheaper one
    Query query{.bytes = 64 * kMiB, .ranks = 8, .nodes = 2};
    query.available = bit(Algorithm::kRing) | bit(Algorithm::kOrdered);
    EXPECT_EQ(choose(query, nullptr, &table).algorithm, Algorithm::kRing);
    query.forced = Algorithm::kOrdered;
    EXPECT_EQ(choose(query, nullptr, &table).algorithm, Algorithm::kOrdered);
    query.forced.reset();
    query.reproducible = true;
    EXPECT_EQ(choose(query, nullptr, &table).algorithm, Algorithm::kOrdered);
}

TEST(ChoiceTest, LeadersOfNodesExchangeSumsWhichIsNoLeftFold)
{
    Query query{.bytes = 8, .ranks = 4, .nodes = 2, .reproducible = true};
    query.available = bit(Algorithm::kHost) | bit(Algorithm::kOrdered);
    EXPECT_EQ(choose(query).algorithm, Algorithm::kOrdered);
    query.nodes = 1;
    EXPECT_EQ(choose(query).algorithm, Algorithm::kHost);
    query.ranks = query.nodes = 2; // two ranks have one order alone
    EXPECT_EQ(choose(query).algorithm, Algorithm::kHost);
}

TEST(ChoiceTest, AForcedAlgorithmThatCannotRunGivesWayToTheCheapest)
{
    const PriceTable table = prices_of(bit(Algorithm::kRing));
    const Query query{.bytes = kMiB, .ranks = 4, .forced = Algorithm::kTree};
    const Choice choice = choose(query, nullptr, &table);
    EXPECT_EQ(choice.algorithm, Algorithm::kRing);
    EXPECT_TRUE(choice.forced_unavailable);
    EXPECT_EQ(choice.source, ChoiceSource::kPrice);
}

TEST(ChoiceTest, WithoutAnythingAvailableTheHostSums)
{
    EXPECT_EQ(choose({.bytes = 8, .ranks = 4, .available = 0}).algorithm, Algorithm::kHost);
}

TEST(ChoiceTest, AForcedAlgorithmIsTaken)
{
    for (const Algorithm algorithm : kOfMessages) {
        for (const std::size_t bytes : {std::size_t{8}, 64 * kMiB}) {
            for (const int ranks : {1, 2, 3, 8}) {
                const Query query{
                    .bytes = bytes, .ranks = ranks, .forced = algorithm, .chunk_bytes = 0};
                EXPECT_EQ(choose(query).algorithm, algorithm);
            }
        }
    }
}

TEST(ChoiceTest, AForcedChunkIsTakenInWholeElements)
{
    for (const auto &[asked, given] : {std::pair<std::size_t, std::size_t>{1, 16},
                                       {15, 16},
                                       {16, 16},
                                       {100, 96},
                                       {4096, 4096},
                                       {16 * kMiB, 16 * kMiB}}) {
        EXPECT_EQ(
            choose({.bytes = kMiB, .ranks = 4, .forced = {}, .chunk_bytes = asked}).chunk_bytes,
            given);
    }
}

TEST(BuildScheduleTest, EachAlgorithmHasItsOwnSchedule)
{
    EXPECT_EQ(
        build_schedule({.algorithm = Algorithm::kRecursiveDoubling}, 0, {.ranks = 5}).block_count,
        1);
    EXPECT_EQ(build_schedule({.algorithm = Algorithm::kRabenseifner}, 0, {.ranks = 5}).block_count,
              5);
    EXPECT_EQ(build_schedule({.algorithm = Algorithm::kRing}, 0, {.ranks = 5}).block_count, 5);
}

} // namespace
} // namespace hetcoll
