#include "tuning/check_table.h"

#include "tuning/build_table.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

Sample sample(Algorithm algorithm, std::int64_t bytes, std::int64_t ns)
{
    return {.setup = {.ranks = 4, .ranks_per_node_min = 4, .ranks_per_node_max = 4},
            .variant = {.algorithm = algorithm},
            .bytes = bytes,
            .min_ns = ns,
            .median_ns = ns,
            .p90_ns = ns};
}

// Three repetitions of two algorithms, each within 2 % of its time.
Measurements measure(std::int64_t ring_ns, std::int64_t two_shot_ns, std::int64_t bytes = 1 << 20)
{
    Measurements all;
    all.machine = "box";
    for (const int percent : {98, 100, 102}) {
        all.samples.push_back(sample(Algorithm::kRing, bytes, ring_ns * percent / 100));
        all.samples.push_back(sample(Algorithm::kTwoShot, bytes, two_shot_ns * percent / 100));
    }
    return all;
}

Table table_of(const Measurements &measurements)
{
    TableFile file;
    replace_machine(file, measurements, build_rules(measurements), "box.measurements");
    return *Table::select_named(file, "box");
}

TEST(CheckTableTest, ATableHoldsForWhatItWasMadeFrom)
{
    const Measurements measurements = measure(400'000, 200'000);
    const TableCheck check = check_table(table_of(measurements), measurements);
    EXPECT_EQ(check.choices, 1);
    EXPECT_TRUE(check.exceptions.empty());
}

TEST(CheckTableTest, ASlowerChoiceIsNamedWithBothTimes)
{
    const Table table = table_of(measure(400'000, 200'000)); // two_shot
    const TableCheck check = check_table(table, measure(200'000, 400'000));
    ASSERT_EQ(check.exceptions.size(), 1u);
    EXPECT_EQ(check.exceptions[0],
              "4 ranks on 1 node, 1048576 bytes: two_shot 400.0 us, but ring 200.0 us: 2.00 times, "
              "spreads 16.0 and 8.0 us");
}

TEST(CheckTableTest, WhatTheMeasurementCannotTellIsNoException)
{
    const Table table = table_of(measure(400'000, 200'000));
    EXPECT_TRUE(check_table(table, measure(180'000, 200'000)).exceptions.empty()); // 11 %
    Measurements noisy = measure(100'000, 120'000);
    noisy.samples.push_back(sample(Algorithm::kRing, 1 << 20, 150'000));
    noisy.samples.push_back(sample(Algorithm::kRing, 1 << 20, 50'000));
    EXPECT_TRUE(check_table(table, noisy).exceptions.empty()); // 20 %, but a spread of 100 us
}

TEST(CheckTableTest, AStepThatTakesThreeTimesAsLongIsAnException)
{
    Measurements measurements = measure(400'000, 200'000, 1 << 20);
    const Table table = table_of(measurements);
    const Measurements larger = measure(1'400'000, 700'000, 2 << 20);
    measurements.samples.insert(measurements.samples.end(), larger.samples.begin(),
                                larger.samples.end());
    const TableCheck check = check_table(table, measurements);
    ASSERT_EQ(check.exceptions.size(), 1u);
    EXPECT_EQ(check.exceptions[0], "4 ranks on 1 node, 2097152 bytes: more than three times as "
                                   "long as half the size");
}

} // namespace
} // namespace hetcoll
