#include "choice/chunk_tuner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace hetcoll {
namespace {

constexpr std::size_t kKiB = 1024;
constexpr std::size_t kMin = 4 * kKiB, kMax = 512 * kKiB;

// A pipeline's time over its chunk: every chunk costs something, and the first one fills it.
struct Pipeline {
    double bytes, chunk_us, bytes_per_us, stages;
    [[nodiscard]] double us(std::size_t chunk) const
    {
        const double size = static_cast<double>(chunk);
        return (bytes / size + stages) * (chunk_us + size / bytes_per_us);
    }
    [[nodiscard]] double best_us() const
    {
        double best = us(kMin);
        for (std::size_t chunk = kMin; chunk <= kMax; chunk *= 2) {
            best = std::min(best, us(chunk));
        }
        return best;
    }
};

Pipeline random_pipeline(std::mt19937_64 &random)
{
    const auto power = [&](double low, double high) {
        return std::pow(10, std::uniform_real_distribution(low, high)(random));
    };
    return {power(5, 9), power(-1, 2), power(3, 5), power(0, 1.5)};
}

TEST(ChunkTunerTest, AValleyIsFoundInANoisyCurve)
{
    std::mt19937_64 random(3);
    std::uniform_real_distribution<double> noise(0.97, 1.03);
    for (int i = 0; i < 20000; ++i) {
        const Pipeline pipeline = random_pipeline(random);
        const std::size_t first = kMin << std::uniform_int_distribution(0, 7)(random);
        ChunkTuner tuner(first, kMin, kMax);
        int calls = 0;
        while (!tuner.frozen()) {
            ++calls;
            ASSERT_LE(calls, ChunkTuner::kMostCalls);
            const double us = pipeline.us(tuner.chunk_bytes()) * noise(random);
            tuner.feed(static_cast<std::uint64_t>(us * 1e3));
        }
        ASSERT_LE(pipeline.us(tuner.chunk_bytes()), 1.1 * pipeline.best_us())
            << "from " << first << " to " << tuner.chunk_bytes();
    }
}

TEST(ChunkTunerTest, NothingChangesAfterTheFreeze)
{
    std::mt19937_64 random(4);
    ChunkTuner tuner(64 * kKiB, kMin, kMax);
    while (!tuner.frozen()) {
        tuner.feed(random() % 1000 + 1);
    }
    const std::size_t chunk = tuner.chunk_bytes();
    for (int i = 0; i < 1000; ++i) {
        tuner.feed(random() % 1000);
        ASSERT_EQ(tuner.chunk_bytes(), chunk);
        ASSERT_TRUE(tuner.frozen());
    }
}

TEST(ChunkTunerTest, TheSameTimesMakeTheSameChunks)
{
    std::mt19937_64 random(5);
    ChunkTuner one(64 * kKiB, kMin, kMax), other(64 * kKiB, kMin, kMax);
    for (int i = 0; i < 30; ++i) {
        const std::uint64_t ns = random() % 100000;
        one.feed(ns);
        other.feed(ns);
        ASSERT_EQ(one.chunk_bytes(), other.chunk_bytes());
    }
}

std::vector<std::size_t> chunks_tried(ChunkTuner tuner, bool larger_is_faster)
{
    std::vector<std::size_t> tried;
    while (!tuner.frozen()) {
        if (tried.empty() || tried.back() != tuner.chunk_bytes()) {
            tried.push_back(tuner.chunk_bytes());
        }
        const std::uint64_t chunk = tuner.chunk_bytes();
        tuner.feed(larger_is_faster ? 1'000'000'000'000 / chunk : chunk * 1000);
    }
    tried.push_back(tuner.chunk_bytes());
    return tried;
}

TEST(ChunkTunerTest, ItDoublesWhileThatHelpsAndElseBacksOff)
{
    const ChunkTuner tuner(16 * kKiB, 8 * kKiB, 64 * kKiB);
    EXPECT_EQ(chunks_tried(tuner, true),
              (std::vector<std::size_t>{16 * kKiB, 32 * kKiB, 64 * kKiB, 64 * kKiB}));
    EXPECT_EQ(chunks_tried(tuner, false),
              (std::vector<std::size_t>{16 * kKiB, 32 * kKiB, 8 * kKiB, 8 * kKiB}));
}

TEST(ChunkTunerTest, ASingleChunkIsTaken)
{
    ChunkTuner tuner(1, 64 * kKiB, 64 * kKiB);
    EXPECT_EQ(tuner.chunk_bytes(), 64 * kKiB);
    tuner.feed(1);
    tuner.feed(1);
    EXPECT_TRUE(tuner.frozen());
    EXPECT_EQ(tuner.chunk_bytes(), 64 * kKiB);
}

TEST(ChunkTunerTest, ChunksHoldWholeElements)
{
    const ChunkTuner tuner(1000, 100, 5000);
    EXPECT_EQ(tuner.chunk_bytes(), 512u);
    EXPECT_EQ(ChunkTuner(7, 7, 7).chunk_bytes(), 16u);
}

} // namespace
} // namespace hetcoll
