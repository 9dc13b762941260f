#include "tuning/measurements.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

constexpr const char *kGood =
    "hetcoll measurements 1\n"
    "# by hand\n"
    "machine box\n"
    "fact gpu 8x Tesla V100\n"
    "columns and so on\n"
    "\n"
    "ring - 4 1 4 4 1 4 sum device 1048576 65536 1.2 10 11.5678\n"
    "hierarchical rabenseifner 8 2 1 7 2 2 other mixed 64 0 3.001 3.01 3.1 7\n";

std::string fault(const std::string &text)
{
    const Result<Measurements> measurements = parse_measurements(text, "m.txt");
    return measurements.ok() ? "no fault" : measurements.status().message();
}

TEST(MeasurementsTest, EveryFieldIsRead)
{
    const Result<Measurements> read = parse_measurements(kGood, "m.txt");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->machine, "box");
    EXPECT_EQ(read->fingerprint.facts.at("gpu"), "8x Tesla V100");
    ASSERT_EQ(read->samples.size(), 2u);
    const Sample ring{
        .setup = {.ranks = 4, .nodes = 1, .ranks_per_node_min = 4, .ranks_per_node_max = 4},
        .variant = {Algorithm::kRing, {}, 65536},
        .bytes = 1048576,
        .min_ns = 1200,
        .median_ns = 10000,
        .p90_ns = 11567};
    EXPECT_EQ(read->samples[0], ring);
    const Sample hierarchy{.setup = {.ranks = 8,
                                     .nodes = 2,
                                     .ranks_per_node_min = 1,
                                     .ranks_per_node_max = 7,
                                     .ranks_per_gpu = 2,
                                     .element_bytes = 2,
                                     .op = OpClass::kOther,
                                     .memory = CallMemory::kMixed},
                           .variant = {Algorithm::kHierarchical, Algorithm::kRabenseifner, 0},
                           .bytes = 64,
                           .min_ns = 3001,
                           .median_ns = 3010,
                           .p90_ns = 3100,
                           .job = 7};
    EXPECT_EQ(read->samples[1], hierarchy);
}

TEST(MeasurementsTest, WhatIsWrittenIsReadBack)
{
    const Measurements once = *parse_measurements(kGood, "m.txt");
    const std::string text = write_measurements(once);
    const Result<Measurements> again = parse_measurements(text, "m.txt");
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->samples, once.samples);
    EXPECT_EQ(again->fingerprint.facts, once.fingerprint.facts);
    EXPECT_EQ(write_measurements(*again), text);
}

TEST(MeasurementsTest, FaultsAreNamedWithTheirLine)
{
    const std::string head = "hetcoll measurements 1\nmachine box\n";
    EXPECT_EQ(fault("machine box\n"),
              "m.txt:1: it does not begin with 'hetcoll measurements 1'; measure again with "
              "hetcoll_tune");
    const auto cause = [&](const std::string &line) {
        const std::string message = fault(head + line);
        const std::size_t begin = message.find(": ") + 2;
        return message.substr(begin, message.find(';') - begin);
    };
    EXPECT_EQ(fault(head + "\n\nring\n").substr(0, 8), "m.txt:5:");
    EXPECT_EQ(cause("ring"), "1 words, not 15 or 16");
    EXPECT_EQ(cause("rings - 4 1 4 4 1 4 sum device 8 0 1 1 1"), "'rings' is no algorithm");
    EXPECT_EQ(cause("ring tree 4 1 4 4 1 4 sum device 8 0 1 1 1"),
              "'tree' is no algorithm between nodes");
    EXPECT_EQ(cause("ring - 0 1 4 4 1 4 sum device 8 0 1 1 1"),
              "'0' is no number of ranks or nodes");
    EXPECT_EQ(cause("ring - 4 -1 4 4 1 4 sum device 8 0 1 1 1"),
              "'-1' is no number of ranks or nodes");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 max device 8 0 1 1 1"), "'max' is no class of ops");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 sum host 8 0 1 1 1"), "'host' is no kind of memory");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 sum device 8k 0 1 1 1"), "'8k' is no size");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 sum device 8 24 1 1 1"), "'24' is no chunk");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 sum device 8 0 1e3 1 1"), "'1e3' is no time");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 sum device 8 0 1 1. 1"), "'1.' is no time");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 sum device 8 0 1 2 1.5"),
              "minimum, median and 90th percentile are not in order, or zero");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 sum device 8 0 1 1 1 x"), "'x' is no number of a job");
    EXPECT_EQ(cause("ring - 4 1 4 4 1 4 sum device 8 0 1 1 1 0 0"), "17 words, not 15 or 16");
    EXPECT_EQ(cause("machine other"), "'machine' takes one name, once");
    EXPECT_EQ(cause("fact gpu"), "'fact' takes a key and a value");
    EXPECT_EQ(cause("fact a 1\nfact a 2"), "fact 'a' is there twice");
    EXPECT_EQ(fault("hetcoll measurements 1\n").substr(0, 30), "m.txt:1: it names no machine; ");
}

} // namespace
} // namespace hetcoll
