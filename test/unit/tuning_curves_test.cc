#include "tuning/curves.h"

#include <gtest/gtest.h>

#include <deque>

namespace hetcoll {
namespace {

constexpr Variant kRing{Algorithm::kRing, {}, 0}, kTree{Algorithm::kTree, {}, 0};

// Times of one size, or of two.
class Times {
public:
    void add(const Variant &variant, int job, std::int64_t us, std::int64_t bytes = 64)
    {
        samples_.push_back({.setup = {},
                            .variant = variant,
                            .bytes = bytes,
                            .min_ns = us * 900,
                            .median_ns = us * 1000,
                            .p90_ns = us * 1100,
                            .job = job});
    }
    [[nodiscard]] Curves curves() const
    {
        std::vector<const Sample *> all;
        for (const Sample &sample : samples_) {
            all.push_back(&sample);
        }
        return Curves(all);
    }

private:
    std::deque<Sample> samples_;
};

TEST(CurvesTest, ThreeJobsOfFourShowTheLeastLoss)
{
    EXPECT_EQ(loss_of({5}).least, 5);
    EXPECT_EQ(loss_of({7, 5}).least, 5);
    EXPECT_EQ(loss_of({9, 7, 5, 11, 13}).least, 5);
    EXPECT_EQ(loss_of({9, 7, 5, 11, 13, 15}).least, 7);
    EXPECT_EQ(loss_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).least, 3);
    EXPECT_EQ(loss_of({9, 7, 5, 11, 13}).middle, 9);
    EXPECT_EQ(loss_of({9, 7, 5, 11}).middle, 8);
    EXPECT_EQ(loss_of({9, 7, 5, 11}).likely(), 6);
}

TEST(CurvesTest, TimesAreComparedWithinAJob)
{
    Times times;
    for (const auto &[job, us] : {std::pair(0, 100), {1, 200}, {2, 400}}) {
        times.add(kRing, job, us);
        times.add(kTree, job, us * 3 / 2);
    }
    const Curves curves = times.curves();
    ASSERT_EQ(curves.variants(), (std::vector<Variant>{kRing, kTree}));
    EXPECT_EQ(curves.loss_ppm(0, 0).middle, 0);
    EXPECT_EQ(curves.loss_ppm(1, 0).least, 500'000);
    EXPECT_EQ(curves.loss_ppm(1, 0).middle, 500'000);
    EXPECT_EQ(curves.longer_ns(1, 0, 0), 100'000);
    EXPECT_EQ(curves.longer_ns(0, 1, 0), 0);
}

TEST(CurvesTest, LinesWithoutAJobPairInTheirOrder)
{
    Times times;
    for (const int us : {100, 200, 400}) {
        times.add(kRing, 0, us);
    }
    for (const int us : {120, 260, 440}) {
        times.add(kTree, 0, us);
    }
    EXPECT_EQ(times.curves().loss_ppm(1, 0).least, 100'000);
    EXPECT_EQ(times.curves().loss_ppm(1, 0).middle, 200'000);
}

TEST(CurvesTest, OfASingleJobTheSpreadOfItsCallsIsNoLoss)
{
    Times times;
    times.add(kRing, 0, 100);
    times.add(kTree, 0, 150);
    EXPECT_EQ(times.curves().loss_ppm(1, 0).least, 350'000);
    EXPECT_EQ(times.curves().loss_ppm(1, 0).middle, 500'000);
}

TEST(CurvesTest, WhatRanAloneIsComparedByItsTime)
{
    Times times;
    times.add(kRing, 0, 100);
    times.add(kTree, 1, 150);
    EXPECT_EQ(times.curves().loss_ppm(0, 0).middle, 0);
    EXPECT_EQ(times.curves().loss_ppm(1, 0).middle, 500'000);
    // Nor does it count as the fastest of its job where others have been compared.
    times.add(kTree, 0, 200);
    EXPECT_EQ(times.curves().loss_ppm(1, 0).middle, 1'000'000);
}

TEST(CurvesTest, GrowthIsThatOfEachJob)
{
    Times times;
    times.add(kRing, 0, 100);
    times.add(kRing, 0, 200, 128);
    times.add(kRing, 1, 200);
    times.add(kRing, 1, 300, 128);
    times.add(kRing, 2, 50, 128);
    EXPECT_EQ(times.curves().growth_ppm(0, 1, 0, 0),
              (std::vector<std::int64_t>{2'000'000, 1'500'000}));
}

} // namespace
} // namespace hetcoll
