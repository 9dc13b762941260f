#include "price/price_table.h"

#include "choice/choose.h"
#include "plan/build_schedule.h"
#include "plan/tree.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

constexpr std::size_t kMi = 1u << 20;

// All sizes: `algorithm` costs `us` at 8 B, and one more for each MiB.
void add_line(PriceTable &table, Algorithm algorithm, double us, std::uint8_t chunk = 16)
{
    for (int size = 0; size < PriceTable::kSizes; ++size) {
        const double mi = static_cast<double>(PriceTable::bytes_of(size)) / kMi;
        table.column(size)[static_cast<std::size_t>(algorithm)] = {
            .us = static_cast<float>(us + mi), .way = chunk};
    }
}

TEST(PriceTableTest, APriceIsALineBetweenSizesAndBeyondThem)
{
    PriceTable table;
    add_line(table, Algorithm::kRing, 2);
    for (const std::size_t bytes :
         {std::size_t{4}, std::size_t{100}, 3 * kMi, 64 * kMi, 65 * kMi, 1024 * kMi}) {
        const double mi = static_cast<double>(bytes) / kMi;
        EXPECT_NEAR(table.us(Algorithm::kRing, bytes), 2 + mi, 1e-4 * (2 + mi)) << bytes;
    }
}

// The line may be too flat: chunks and segments are unlike ones at the last two sizes.
TEST(PriceTableTest, BeyondTheLastSizeAPriceRisesNearlyAsMuchAByte)
{
    PriceTable table;
    add_line(table, Algorithm::kHierarchical, 10);
    EXPECT_NEAR(table.us(Algorithm::kHierarchical, 64 * kMi), 74, 1e-3);
    EXPECT_NEAR(table.us(Algorithm::kHierarchical, 1024 * kMi), 74 + 15 * 0.95 * 74, 1e-2);
}

// Nothing was run there, so a better line must be worth something.
TEST(PriceTableTest, BeyondTheLastSizeTheBestThereIsTakenUnlessAnotherIsMuchCheaper)
{
    constexpr std::size_t kLarge = 1024 * kMi;
    const auto chosen = [](double ring, double other, std::size_t bytes) { // times 32 MiB's price
        PriceTable table;
        add_line(table, Algorithm::kRing, 0);
        add_line(table, Algorithm::kRabenseifner, 0.1);
        PriceTable::Column &column = table.column(PriceTable::kSizes - 2);
        column[static_cast<std::size_t>(Algorithm::kRing)].us *= static_cast<float>(ring);
        column[static_cast<std::size_t>(Algorithm::kRabenseifner)].us *= static_cast<float>(other);
        return choose({.bytes = bytes, .ranks = 4}, nullptr, &table).algorithm;
    };
    EXPECT_EQ(chosen(1, 1.04, 64 * kMi), Algorithm::kRing);
    EXPECT_EQ(chosen(1, 1.04, kLarge), Algorithm::kRing) << "rises by 4 % more";
    EXPECT_EQ(chosen(0.8, 1, kLarge), Algorithm::kRabenseifner) << "by 20 %";
}

// A longer vector takes at least as long, and at most as long a byte.
TEST(PriceTableTest, WhatIsGivenUpOnOneSideCostsAtMostWhatTheOtherSays)
{
    constexpr auto kRing = static_cast<std::size_t>(Algorithm::kRing);
    constexpr float kGivenUp = std::numeric_limits<float>::infinity();
    PriceTable table;
    EXPECT_EQ(table.us(Algorithm::kRing, 8), 0) << "not priced";
    EXPECT_EQ(table.find(Algorithm::kRing, 8), nullptr);
    add_line(table, Algorithm::kRing, 10);
    table.column(3)[kRing].way = 3;
    table.column(4)[kRing] = {.us = kGivenUp, .way = 4}; // 16 KiB
    const double at_8k = table.us(Algorithm::kRing, 8192),
                 at_32k = table.us(Algorithm::kRing, 32768);
    EXPECT_NEAR(at_8k, 10, 0.1) << "whatever the next size says";
    EXPECT_NEAR(table.us(Algorithm::kRing, 12288), 1.5 * at_8k, 1e-9);
    EXPECT_EQ(table.find(Algorithm::kRing, 12288)->way, 3u);
    EXPECT_GT(table.us(Algorithm::kRing, 16384), 1e300);
    EXPECT_EQ(table.find(Algorithm::kRing, 16384)->way, 4u) << "a table may name it all the same";
    EXPECT_EQ(table.us(Algorithm::kRing, 16385), at_32k);
    EXPECT_NEAR(at_32k, 10, 0.1);
    for (const int size : {PriceTable::kSizes - 2, PriceTable::kSizes - 1}) { // the last two
        PriceTable large;
        add_line(large, Algorithm::kRing, 10);
        large.column(size)[kRing].us = kGivenUp;
        const bool is_last = size == PriceTable::kSizes - 1;
        EXPECT_EQ(large.us(Algorithm::kRing, 64 * kMi) > 1e300, is_last);
        EXPECT_EQ(large.us(Algorithm::kRing, 128 * kMi) > 1e300, is_last);
    }
}

TEST(PriceTableTest, TheCheapestAvailableOneServes)
{
    PriceTable table;
    add_line(table, Algorithm::kRing, 10, 32);
    add_line(table, Algorithm::kRabenseifner, 9);
    add_line(table, Algorithm::kRecursiveDoubling, 11);
    Query query{.bytes = 8 * kMi, .ranks = 8};
    EXPECT_EQ(choose(query, nullptr, &table).algorithm, Algorithm::kRabenseifner);
    query.available = bit(Algorithm::kRing) | bit(Algorithm::kRecursiveDoubling);
    const Choice ring = choose(query, nullptr, &table);
    EXPECT_EQ(ring.algorithm, Algorithm::kRing);
    EXPECT_EQ(ring.chunk_bytes, 32 * kEncodedChunkUnit);
    query.chunk_bytes = 65536;
    EXPECT_EQ(choose(query, nullptr, &table).chunk_bytes, 65536u);
}

// Between the sizes that it always serves and those that it never does, the host's price decides.
TEST(PriceTableTest, TheHostCompetesUpToFourTimesTheSmallLimit)
{
    const AlgorithmSet large = bit(Algorithm::kRing) | bit(Algorithm::kCopyIn);
    EXPECT_EQ(at_size(large, 9000, 8192, false), bit(Algorithm::kRing)) << "it has no price";
    const AlgorithmSet both = bit(Algorithm::kRing) | bit(Algorithm::kHost);
    EXPECT_EQ(at_size(large, 8192, 8192, true), bit(Algorithm::kCopyIn) | bit(Algorithm::kHost));
    EXPECT_EQ(at_size(large, 8193, 8192, true), both);
    EXPECT_EQ(at_size(large, 4096, 1024, true), both);
    EXPECT_EQ(at_size(large, 4097, 1024, true), bit(Algorithm::kRing));
    EXPECT_EQ(at_size(large, 32768, 8192, true), both);
    EXPECT_EQ(at_size(large, 32769, 8192, true), bit(Algorithm::kRing));
    EXPECT_EQ(at_size(large, 32769, 16384, true), bit(Algorithm::kRing)) << "an exchange's most";
    EXPECT_EQ(at_size(large, 4, 0, true), bit(Algorithm::kRing));
}

// Four times the bytes are cut into twice as many segments.
TEST(PriceTableTest, LargerVectorsThanPricedHaveMoreSegments)
{
    PriceTable table;
    for (int size = 0; size < PriceTable::kSizes; ++size) {
        table.column(size)[static_cast<std::size_t>(Algorithm::kHierarchical)] = {
            .us = 10, .way = encode({.algorithm = Algorithm::kHierarchical, .segments = 8})};
    }
    Query query{.bytes = 64 * kMi, .ranks = 16, .nodes = 2, .forced = Algorithm::kHierarchical};
    query.available |= bit(Algorithm::kHierarchical);
    EXPECT_EQ(choose(query, nullptr, &table).segments, 8);
    query.bytes = 256 * kMi;
    EXPECT_EQ(choose(query, nullptr, &table).segments, 16);
    query.bytes = 1024 * kMi;
    EXPECT_EQ(choose(query, nullptr, &table).segments, 32);
}

// Which have fewer lanes then: no more channels than a call has. The last two are kept.
TEST(PriceTableTest, SegmentsAndLanesFitTheChannels)
{
    PriceTable table;
    Query query{.ranks = 16, .nodes = 2, .forced = Algorithm::kHierarchical};
    query.available |= bit(Algorithm::kHierarchical);
    const auto cut = [&](int mib, const Way &way) {
        for (int size = 0; size < PriceTable::kSizes; ++size) {
            table.column(size)[static_cast<std::size_t>(Algorithm::kHierarchical)] = {
                .us = 10, .way = encode(way)};
        }
        query.bytes = static_cast<std::size_t>(mib) * kMi;
        const Choice choice = choose(query, nullptr, &table);
        return std::pair(choice.segments, choice.lanes);
    };
    const Way four{.over_trees = true, .segments = 8, .lanes = 4};
    EXPECT_EQ(cut(64, four), std::pair(8, 4));
    EXPECT_EQ(cut(256, four), std::pair(16, 2));
    EXPECT_EQ(cut(1024, four), std::pair(16, 2));
    EXPECT_EQ(cut(256, {.over_trees = true, .segments = 2, .lanes = 8}), std::pair(4, 8));
    EXPECT_EQ(cut(1024, {.over_trees = true, .segments = 2, .lanes = 8}), std::pair(8, 4));
}

// How a hierarchy goes is part of its price.
TEST(PriceTableTest, TheWayIsThatOfThePrice)
{
    PriceTable table;
    Query query{.bytes = kMi, .ranks = 16, .nodes = 2, .forced = Algorithm::kHierarchical};
    query.available |= bit(Algorithm::kHierarchical);
    for (const Algorithm between : {Algorithm::kRing, Algorithm::kRecursiveDoubling}) {
        const Way plain{
            .algorithm = Algorithm::kHierarchical, .between_nodes = between, .chunk_bytes = 65536};
        Way cut = plain;
        cut.over_trees = true;
        cut.segments = 16;
        cut.leaving = 4;
        cut.lanes = 2;
        for (const Way &way : {plain, cut}) {
            for (int size = 0; size < PriceTable::kSizes; ++size) {
                table.column(size)[static_cast<std::size_t>(Algorithm::kHierarchical)] = {
                    .us = 10, .way = encode(way)};
            }
            EXPECT_EQ(static_cast<const Way &>(choose(query, nullptr, &table)), way);
        }
    }
}

TEST(PriceTableTest, SaysHowManyPartsOfTreesGoThroughHostMemoryAndAdapters)
{
    const Links links{.tree_gbps = 25, .host_gbps = 12, .host_shared_gbps = 6};
    const auto way = [&](int host, int adapter) {
        PriceTable table;
        for (int size = 0; size < PriceTable::kSizes; ++size) {
            PricedCell &cell = table.column(size)[static_cast<std::size_t>(Algorithm::kTree)];
            cell = {
                .us = 10,
                .way = encode(
                    {.algorithm = Algorithm::kTree, .host_parts = host, .adapter_parts = adapter})};
        }
        Query query{.bytes = 64 * kMi, .ranks = 3, .forced = Algorithm::kTree, .links = links};
        query.available |= bit(Algorithm::kTree);
        return resolve_parts(choose(query, nullptr, &table), query.bytes, links, 3);
    };
    EXPECT_EQ(way(7, 0).host_parts, 7);
    EXPECT_EQ(way(0, 0).host_parts, 0);
    EXPECT_EQ(way(-1, 0).host_parts, 9); // 4.5 of 29.5 GB/s
    EXPECT_EQ(most_sides(links, 3).host, 9);
    for (const int adapter : {0, 1, kMostEncodedAdapterParts}) {
        EXPECT_EQ(way(7, adapter).host_parts, 7);
        EXPECT_EQ(way(7, adapter).adapter_parts, adapter);
    }
}

TEST(PriceTableTest, AdaptersCarryNothingUnlessATrialHasFoundThatTheyCan)
{
    Links links{.tree_gbps = 25, .adapter_gbps = 6};
    EXPECT_EQ(most_sides(links, 3).adapter, 0);
    links.by_adapters = true;
    EXPECT_EQ(most_sides(links, 3).adapter, 9); // 4.5 of 29.5 GB/s
    links.tree_gbps = 5;
    EXPECT_EQ(most_sides(links, 3).adapter, kMostEncodedAdapterParts); // a price says no more
}

} // namespace
} // namespace hetcoll
