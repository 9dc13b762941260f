#include "tuning/check_table.h"

#include "tuning/build_table.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

Sample sample(Algorithm algorithm, std::int64_t bytes, std::int64_t ns, int job)
{
    return {.setup = {.ranks = 4, .ranks_per_node_min = 4, .ranks_per_node_max = 4},
            .variant = {.algorithm = algorithm},
            .bytes = bytes,
            .min_ns = ns,
            .median_ns = ns,
            .p90_ns = ns,
            .job = job};
}

// Three jobs with two algorithms, each within 2 % of its time.
Measurements measure(std::int64_t ring_ns, std::int64_t two_shot_ns, std::int64_t bytes = 1 << 20)
{
    Measurements all;
    all.machine = "box";
    for (const int percent : {98, 100, 102}) {
        all.samples.push_back(sample(Algorithm::kRing, bytes, ring_ns * percent / 100, percent));
        all.samples.push_back(
            sample(Algorithm::kTwoShot, bytes, two_shot_ns * percent / 100, percent));
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
    EXPECT_EQ(
        check.exceptions[0],
        "4 ranks on 1 node, 1048576 bytes: two_shot 400.0 us, but ring 200.0 us: 2.00 times, in "
        "three jobs of four at least 2.00");
}

TEST(CheckTableTest, WhatTheMeasurementCannotTellIsNoException)
{
    const Table table = table_of(measure(400'000, 200'000));
    EXPECT_TRUE(check_table(table, measure(180'000, 200'000)).exceptions.empty()); // 11 %
    Measurements noisy = measure(100'000, 130'000);
    noisy.samples.push_back(sample(Algorithm::kRing, 1 << 20, 130'000, 7));
    noisy.samples.push_back(sample(Algorithm::kTwoShot, 1 << 20, 120'000, 7));
    EXPECT_TRUE(check_table(table, noisy).exceptions.empty()); // 30 %, but not in every job
}

TEST(CheckTableTest, WhatAllJobsShowIsAnExceptionThoughJobsDiffer)
{
    const Table table = table_of(measure(400'000, 200'000));
    Measurements slow = measure(100'000, 130'000);
    slow.samples.push_back(sample(Algorithm::kRing, 1 << 20, 300'000, 7));
    slow.samples.push_back(sample(Algorithm::kTwoShot, 1 << 20, 390'000, 7));
    EXPECT_EQ(check_table(table, slow).exceptions.size(), 1u);
}

TEST(CheckTableTest, ARuleWithAChunkIsCheckedWithThatChunk)
{
    Measurements measurements = measure(400'000, 200'000);
    Measurements chunked = measurements;
    for (Sample &each : chunked.samples) {
        each.variant.chunk_bytes = 65536;
        each.median_ns /= 2;
        measurements.samples.push_back(each);
    }
    const Table table = table_of(measurements); // two_shot/65536
    for (Sample &each : measurements.samples) {
        each.median_ns *= each.variant.chunk_bytes != 0 ? 4 : 1;
    }
    const TableCheck check = check_table(table, measurements);
    ASSERT_EQ(check.exceptions.size(), 1u);
    EXPECT_EQ(check.exceptions[0],
              "4 ranks on 1 node, 1048576 bytes: two_shot/65536 400.0 us, but two_shot 200.0 us: "
              "2.00 times, in three jobs of four at least 2.00");
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
