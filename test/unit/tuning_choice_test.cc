#include "tuning/choice.h"

#include "tuning/build_schedule.h"

#include <gtest/gtest.h>

#include <ostream>
#include <utility>

namespace hetcoll {

// GoogleTest prints it.
static std::ostream &operator<<(std::ostream &to, Algorithm algorithm)
{
    return to << algorithm_name(algorithm);
}

namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
constexpr Algorithm kOfMessages[] = {Algorithm::kRecursiveDoubling, Algorithm::kRabenseifner,
                                     Algorithm::kRing};

Choice choose_for(std::size_t bytes, int ranks)
{
    return choose({.bytes = bytes, .ranks = ranks, .forced = std::nullopt, .chunk_bytes = 0});
}

TEST(ChoiceTest, SmallVectorsTakeTheFewestRounds)
{
    for (const int ranks : {1, 2, 4, 8, 16, 128}) {
        for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, 4 * kKiB, 32 * kKiB}) {
            EXPECT_EQ(choose_for(bytes, ranks).algorithm, Algorithm::kRecursiveDoubling)
                << bytes << " bytes, " << ranks << " ranks";
        }
    }
}

TEST(ChoiceTest, LargeVectorsTakeTheRing)
{
    for (const int ranks : {3, 4, 7, 8, 16, 33}) {
        EXPECT_EQ(choose_for(ranks * kMiB, ranks).algorithm, Algorithm::kRing) << ranks;
        EXPECT_EQ(choose_for(8 * kGiB, ranks).algorithm, Algorithm::kRing) << ranks;
    }
}

// Between two ranks the ring moves the same bytes in twice the messages.
TEST(ChoiceTest, TwoRanksExchangeTheVectorWhateverItsSize)
{
    EXPECT_EQ(choose_for(8, 2).algorithm, Algorithm::kRecursiveDoubling);
    EXPECT_EQ(choose_for(8 * kGiB, 2).algorithm, Algorithm::kRecursiveDoubling);
}

bool is_radix(Algorithm algorithm)
{
    return algorithm == Algorithm::kRabenseifner || algorithm == Algorithm::kRadix3 ||
           algorithm == Algorithm::kRadix4 || algorithm == Algorithm::kRadix8;
}

// Nobody folds, whatever the number of ranks.
TEST(ChoiceTest, VectorsInBetweenGoInFewRoundsOfAFewPartners)
{
    for (const int ranks : {4, 7, 16, 24}) {
        EXPECT_TRUE(is_radix(choose_for(kMiB, ranks).algorithm)) << ranks;
    }
    EXPECT_TRUE(is_radix(choose_for(64 * kMiB, 128).algorithm));
    EXPECT_EQ(choose_for(64 * kKiB, 4).algorithm, Algorithm::kRecursiveDoubling);
}

TEST(ChoiceTest, AForcedAlgorithmThatCannotRunGivesWayToTheFastest)
{
    const Query query{.bytes = kMiB, .ranks = 4, .forced = Algorithm::kTree};
    const Choice choice = choose(query);
    EXPECT_EQ(choice.algorithm, choose_for(kMiB, 4).algorithm);
    EXPECT_TRUE(choice.forced_unavailable);
    EXPECT_EQ(choice.source, ChoiceSource::kModel);
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

TEST(ChoiceTest, ChunksStayWithinTheirBoundsAndHoldWholeElements)
{
    for (const int ranks : {1, 2, 3, 4, 7, 8, 33, 1024}) {
        for (std::size_t bytes = 1; bytes < 64 * kGiB; bytes = bytes * 5 + 3) {
            for (const Algorithm algorithm : kOfMessages) {
                const std::size_t chunk =
                    choose({.bytes = bytes, .ranks = ranks, .forced = algorithm, .chunk_bytes = 0})
                        .chunk_bytes;
                EXPECT_GE(chunk, 64 * kKiB);
                EXPECT_LE(chunk, 512 * kKiB);
                EXPECT_EQ(chunk % 16, 0u);
            }
        }
    }
}

TEST(ChoiceTest, LargeMessagesAreCutIntoAtLeastFourChunks)
{
    const auto chunk = [](Algorithm algorithm, std::size_t bytes, int ranks) {
        return choose({.bytes = bytes, .ranks = ranks, .forced = algorithm, .chunk_bytes = 0})
            .chunk_bytes;
    };
    // The whole vector, half of it, a block.
    EXPECT_EQ(chunk(Algorithm::kRecursiveDoubling, kMiB, 4), 256 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRabenseifner, kMiB, 4), 128 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRabenseifner, kMiB, 5), 128 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRing, kMiB, 4), 64 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRing, 4 * kMiB, 4), 256 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRing, 64 * kMiB, 4), 512 * kKiB);
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
