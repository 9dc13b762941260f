#include "wsp/wave_clock.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hetcoll {
namespace {

// Ranks that advance in a random order, each as far as the rules let it. A wave is complete as soon
// as its last rank ends it, and a rank takes complete waves when it ends one of its own.
struct Job {
    Job(int ranks, const WaveRules &rules) : clocks(ranks, WaveClock(rules)) {}

    [[nodiscard]] std::uint64_t complete() const
    {
        std::uint64_t least = clocks[0].ended();
        for (const WaveClock &clock : clocks) {
            least = std::min(least, clock.ended());
        }
        return least;
    }
    // One step of a rank, or nothing where it has to wait.
    void try_step(WaveClock &clock)
    {
        if (clock.applied() < clock.must_have()) {
            take(clock);
            return;
        }
        worst = std::max(worst, clock.staleness());
        if (clock.step()) {
            clock.end_wave();
            take(clock);
        }
    }
    void take(WaveClock &clock) const
    {
        while (clock.applied() < std::min(complete(), clock.may_have())) {
            clock.apply_wave();
        }
    }

    std::vector<WaveClock> clocks;
    std::uint64_t worst = 0;
};

std::uint64_t hetpipe_bound(int in_flight, int distance)
{
    const int local = in_flight - 1;
    return static_cast<std::uint64_t>((distance + 1) * (local + 1) + local - 1);
}

TEST(WaveClockTest, StalenessNeverExceedsHetPipesBoundWhateverTheOrder)
{
    std::mt19937 random(7);
    for (int in_flight = 1; in_flight <= 4; ++in_flight) {
        for (int distance = 0; distance <= 8; ++distance) {
            Job job(3, {distance, in_flight, in_flight, false});
            EXPECT_EQ(job.clocks[0].staleness_bound(), hetpipe_bound(in_flight, distance));
            for (int i = 0; i < 5000; ++i) {
                job.try_step(job.clocks[random() % job.clocks.size()]);
            }
            EXPECT_LE(job.worst, hetpipe_bound(in_flight, distance))
                << in_flight << " in flight, distance " << distance;
        }
    }
}

TEST(WaveClockTest, TheBoundIsReachedWhereOneRankIsAlwaysFirst)
{
    for (int in_flight = 1; in_flight <= 4; ++in_flight) {
        for (int distance = 0; distance <= 8; ++distance) {
            Job job(2, {distance, in_flight, in_flight, false});
            for (int i = 0; i < 200; ++i) {
                for (int ahead = 0; ahead < 60; ++ahead) {
                    job.try_step(job.clocks[0]); // until it has to wait
                }
                job.try_step(job.clocks[1]);
            }
            EXPECT_EQ(job.worst, hetpipe_bound(in_flight, distance));
        }
    }
}

TEST(WaveClockTest, WithoutAPipelineAStepLacksAtMostTheWavesOfTheDistance)
{
    EXPECT_EQ(WaveClock({.distance = 0, .steps_per_wave = 1}).staleness_bound(), 0u); // in lockstep
    EXPECT_EQ(WaveClock({.distance = 2, .steps_per_wave = 1}).staleness_bound(), 2u);
    EXPECT_EQ(WaveClock({.distance = 1, .steps_per_wave = 5}).staleness_bound(), 9u);
}

TEST(WaveClockTest, DeterministicRulesApplyAWaveExactlyWhenItMustBe)
{
    WaveClock clock({.distance = 2, .steps_per_wave = 1, .deterministic = true});
    for (std::uint64_t ended = 1; ended < 10; ++ended) {
        EXPECT_TRUE(clock.step());
        clock.end_wave();
        EXPECT_EQ(clock.may_have(), clock.must_have());
        EXPECT_EQ(clock.must_have(), ended > 2 ? ended - 2 : 0);
    }
}

TEST(WaveClockTest, AfterAFlushNothingIsLackingEvenIfAWaveWasShort)
{
    WaveClock clock({.distance = 1, .steps_per_wave = 4});
    for (int i = 0; i < 6; ++i) {
        if (clock.step()) {
            clock.end_wave();
        }
    }
    clock.end_wave(); // two steps
    clock.apply_wave();
    clock.apply_wave();
    clock.all_applied();
    EXPECT_EQ(clock.staleness(), 0u);
    EXPECT_FALSE(clock.step());
    EXPECT_EQ(clock.staleness(), 1u);
}

} // namespace
} // namespace hetcoll
