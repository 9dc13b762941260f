// Up to which sizes the processor moves small vectors: from measurements to the table and back.
#include "machine/cpu_limits.h"
#include "tuning/build_table.h"
#include "tuning/table.h"

#include <gtest/gtest.h>

#include <string>

namespace hetcoll {
namespace {

TEST(CpuLimitsTest, EndWhereACopyTakesLessTimeForTheFirstTime)
{
    const std::vector<CpuSample> samples = {{false, 8, 1'700, 6'000},   {false, 64, 3'600, 6'000},
                                            {false, 256, 6'000, 6'000}, {false, 512, 7'000, 6'000},
                                            {false, 1024, 1, 6'000},    {true, 8, 90, 6'000},
                                            {true, 1024, 180, 6'000}};
    EXPECT_EQ(limits_of(samples), (CpuLimits{.read_bytes = 256, .write_bytes = 1024}));
    EXPECT_EQ(limits_of({samples.rbegin(), samples.rend()}), limits_of(samples));
}

TEST(CpuLimitsTest, AreZeroWhereEveryCopyTakesLessTime)
{
    EXPECT_EQ(limits_of({{false, 8, 9, 6}, {true, 8, 1, 6}}),
              (CpuLimits{.read_bytes = 0, .write_bytes = 8}));
}

TEST(CpuLimitsTest, AreUnknownWithoutMeasurements) { EXPECT_EQ(limits_of({}), std::nullopt); }

Measurements measured()
{
    Measurements measurements;
    measurements.path = "m.txt";
    measurements.machine = "box";
    measurements.samples.push_back({.setup = {.ranks = 2, .nodes = 2},
                                    .variant = {},
                                    .bytes = 8,
                                    .min_ns = 1'000,
                                    .median_ns = 1'000,
                                    .p90_ns = 1'000});
    measurements.cpu = {{false, 8, 1'700, 6'250}, {true, 16, 90, 6'000}};
    return measurements;
}

TEST(CpuLimitsTest, TheMeasurementsAreReadBackAsTheyWere)
{
    const std::string text = write_measurements(measured());
    EXPECT_NE(text.find("cpu read 8 1.700 6.250\ncpu write 16 0.090 6.000\n"), std::string::npos);
    const auto read = parse_measurements(text, "m.txt");
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->cpu, measured().cpu);
}

TEST(CpuLimitsTest, ABadLineOfMeasurementsIsNamed)
{
    for (const char *const line :
         {"cpu read 8 1.7", "cpu reads 8 1 2", "cpu read -8 1 2", "cpu write 8 1 2x"}) {
        const auto read = parse_measurements(
            "hetcoll measurements 1\nmachine x\n" + std::string(line) + "\n", "m.txt");
        ASSERT_FALSE(read.ok()) << line;
        EXPECT_EQ(read.status().message().find(
                      "m.txt:3: 'cpu' takes 'read' or 'write', a size and two times"),
                  0u);
    }
}

// A rank's own matter: ranks with different ones choose alike.
TEST(CpuLimitsTest, AreInTheTableAndNoPartOfItsHash)
{
    TableFile table;
    replace_machine(table, measured(), build_rules(measured()), "m.txt");
    const auto with = parse_table(write_table(table), "t.json");
    ASSERT_TRUE(with.ok()) << with.status().message();
    EXPECT_EQ(with->machines[0].cpu, (CpuLimits{.read_bytes = 8, .write_bytes = 16}));
    const auto chosen = Table::select(*with, {});
    ASSERT_TRUE(chosen.ok());
    EXPECT_EQ(chosen->cpu(), with->machines[0].cpu);

    table.machines[0].cpu.reset();
    const auto without = parse_table(write_table(table), "t.json");
    ASSERT_TRUE(without.ok());
    EXPECT_EQ(without->machines[0].cpu, std::nullopt);
    EXPECT_EQ(table_hash(*without), table_hash(*with));
    EXPECT_EQ(Table::select(*without, {})->hash(), chosen->hash());
}

TEST(CpuLimitsTest, ATableHasBothOrNeither)
{
    const auto table = parse_table(
        R"({"rule_file_version": 3, "module": "hetcoll", "machines": [{"name": "x",
            "fingerprint": {}, "cpu_read_bytes": 8}], "collectives": {"allreduce": []}})",
        "t.json");
    ASSERT_FALSE(table.ok());
    EXPECT_NE(table.status().message().find("a machine has 'cpu_read_bytes' and 'cpu_write_bytes', "
                                            "or neither"),
              std::string::npos);
}

} // namespace
} // namespace hetcoll
