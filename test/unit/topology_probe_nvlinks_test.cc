#include "topology_probe/nvlinks.h"

#include "test/unit/topology_probe_nvml.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

const char *const kGpu = "0000:06:00.0", *const kOther = "00000000:07:00.0";
const BusId kGpuBus = *parse_bus_id(kGpu), kOtherBus = *parse_bus_id(kOther);

class NvlinksTest : public ::testing::Test {
protected:
    // The links of kGpu.
    void set(std::vector<FakeNvml::Link> links) { nvml->gpus[kGpuBus].links = std::move(links); }

    GpuNvlinks read(const MachineTree &tree = {}) const
    {
        return read_nvlinks(fake_nvml_path(), kGpuBus, tree);
    }

    LoadedFakeNvml nvml;
};

TEST_F(NvlinksTest, TakesTheLinksToOnePeerTogether)
{
    set({{.remote = kOther, .version = 2},
         {.remote = "00000000:0A:00.0", .version = 2},
         {.remote = kOther, .version = 2}});
    const GpuNvlinks found = read();
    EXPECT_EQ(found.missing, "");
    ASSERT_EQ(found.bundles.size(), 2u);
    EXPECT_EQ(found.bundles[0].remote, kOtherBus);
    EXPECT_EQ(found.bundles[0].count, 2);
    EXPECT_EQ(found.bundles[0].end, NvlinkEnd::kGpu);
    EXPECT_EQ(found.bundles[1].remote, *parse_bus_id("0000:0a:00.0"));
    EXPECT_EQ(found.bundles[1].count, 1);
}

TEST_F(NvlinksTest, TakesTheLinksToAllSwitchesTogether)
{
    set({{.type = 2, .remote = "00000000:c1:00.0", .version = 4},
         {.type = 2, .remote = "00000000:c2:00.0", .version = 4},
         {.type = 2, .remote = "00000000:00:00.0", .version = 4},
         {.type = 2, .remote = "FFFFFFFF:FF:FF.0", .version = 4}});
    const GpuNvlinks found = read();
    EXPECT_EQ(found.missing, "");
    ASSERT_EQ(found.bundles.size(), 1u);
    EXPECT_EQ(found.bundles[0].end, NvlinkEnd::kSwitch);
    EXPECT_EQ(found.bundles[0].count, 4);
    EXPECT_EQ(found.bundles[0].remote, BusId{});
}

TEST_F(NvlinksTest, KnowsLinksToTheCpu)
{
    set({{.type = 1, .remote = "00000006:00:00.1", .version = 2},
         {.type = 1, .remote = "00000006:00:00.2", .version = 2}});
    const GpuNvlinks found = read();
    ASSERT_EQ(found.bundles.size(), 1u);
    EXPECT_EQ(found.bundles[0].end, NvlinkEnd::kCpu);
    EXPECT_EQ(found.bundles[0].count, 2);
}

TEST_F(NvlinksTest, LinksThatAreDownDoNotCount)
{
    set({{.active = false, .remote = kOther, .version = 2}, {.remote = kOther, .version = 2}});
    const GpuNvlinks found = read();
    ASSERT_EQ(found.bundles.size(), 1u);
    EXPECT_EQ(found.bundles[0].count, 1);
}

TEST_F(NvlinksTest, ANumberWithoutALinkDoesNotEndThem)
{
    set({{.missing = true}, {.remote = kOther}, {.missing = true}, {.remote = kOther}});
    const GpuNvlinks found = read();
    EXPECT_EQ(found.missing, "");
    ASSERT_EQ(found.bundles.size(), 1u);
    EXPECT_EQ(found.bundles[0].count, 2);
}

TEST_F(NvlinksTest, LinksThatCarryNoMemoryDoNotCount)
{
    set({{.remote = kOther, .peers = false}, {.remote = kOther}});
    const GpuNvlinks found = read();
    ASSERT_EQ(found.bundles.size(), 1u);
    EXPECT_EQ(found.bundles[0].count, 1);
}

TEST_F(NvlinksTest, ALinkToTheCpuCarriesItsMemory)
{
    set({{.type = 1, .remote = "00000006:00:00.1", .peers = false, .host_memory = true}});
    EXPECT_EQ(read().bundles.size(), 1u);
}

// As of GPUs whose state the older call does not know.
TEST_F(NvlinksTest, TheFieldTellsTheStateBeforeTheCall)
{
    set({{.active = false, .remote = kOther, .field_state = 1},
         {.active = true, .remote = kOther, .field_state = 0},
         {.active = false, .remote = kOther, .field_state = 1}});
    const GpuNvlinks found = read();
    ASSERT_EQ(found.bundles.size(), 1u);
    EXPECT_EQ(found.bundles[0].count, 2);
}

TEST_F(NvlinksTest, ADividedGpuHasNone)
{
    set({{.remote = kOther, .version = 4}});
    nvml->gpus[kGpuBus].mig = true;
    const GpuNvlinks found = read();
    EXPECT_EQ(found.missing, "");
    EXPECT_TRUE(found.bundles.empty());
}

TEST_F(NvlinksTest, AGpuWithoutNvlinkIsNoError)
{
    set({});
    const GpuNvlinks found = read();
    EXPECT_EQ(found.missing, "");
    EXPECT_TRUE(found.bundles.empty());
}

TEST_F(NvlinksTest, LinksToWhatCannotBeNamedAreLeftOut)
{
    set({{.type = 0, .remote = "00000000:00:00.0", .version = 4},
         {.type = 0, .remote = "nonsense", .version = 4}});
    EXPECT_TRUE(read().bundles.empty());
}

TEST_F(NvlinksTest, HwlocTellsASwitchFromAGpuIfNvmlCannot)
{
    set({{.type = FakeNvml::kNoType, .remote = "00000000:c1:00.0", .version = 2},
         {.type = 0xff, .remote = kOther, .version = 2}});
    MachineTree tree;
    tree.devices.push_back({.kind = VertexKind::kNvSwitch, .bus = *parse_bus_id("0000:c1:00.0")});
    const GpuNvlinks found = read(tree);
    ASSERT_EQ(found.bundles.size(), 2u);
    EXPECT_EQ(found.bundles[0].end, NvlinkEnd::kSwitch);
    EXPECT_EQ(found.bundles[1].end, NvlinkEnd::kGpu);
}

double rate_of(LoadedFakeNvml &nvml, FakeNvml::Link link)
{
    link.remote = kOther;
    nvml->gpus[kGpuBus].links = {link};
    const GpuNvlinks found = read_nvlinks(fake_nvml_path(), kGpuBus, {});
    return found.bundles.size() == 1 ? found.bundles[0].gbps : -1;
}

TEST_F(NvlinksTest, TheVersionTellsTheRate)
{
    const double expected[] = {25, 20, 25, 25, 25, 25, 25, 50, 50}; // unknown, 1.0 to 5.0, newer
    for (unsigned version = 0; version < std::size(expected); ++version) {
        EXPECT_EQ(rate_of(nvml, {.version = version}), expected[version]) << version;
    }
}

TEST_F(NvlinksTest, TheSpeedTellsTheRateBeforeTheVersion)
{
    EXPECT_EQ(rate_of(nvml, {.version = 4, .speed = 14062}), 14.062); // RTX A6000
    EXPECT_EQ(rate_of(nvml, {.version = 4, .common_speed = 14062}), 14.062);
    EXPECT_EQ(rate_of(nvml, {.version = 1, .common_speed = 19531}), 20); // P100
    EXPECT_EQ(rate_of(nvml, {.version = 2, .common_speed = 25781}), 25); // V100
    EXPECT_EQ(rate_of(nvml, {.version = 6, .speed = 26562}), 25);        // H100
    EXPECT_EQ(rate_of(nvml, {.version = 7, .speed = 53125}), 50);        // B200
}

TEST_F(NvlinksTest, IsShutDownAgain)
{
    set({{.remote = kOther, .version = 2}});
    (void)read();
    EXPECT_EQ(nvml->initialized, 0);
    EXPECT_GT(nvml->calls, 0);
}

struct Failure {
    const char *call;
    std::size_t bundles; // that are still found
    bool is_told;
};

class NvlinkFailureTest : public ::testing::TestWithParam<Failure> {};

TEST_P(NvlinkFailureTest, WhatCannotBeReadIsMissingAndTheRestIsThere)
{
    LoadedFakeNvml nvml;
    nvml->gpus[kGpuBus].links = {{.remote = kOther, .version = 2},
                                 {.remote = "00000000:0A:00.0", .version = 2}};
    nvml->failing = GetParam().call;
    const GpuNvlinks found = read_nvlinks(fake_nvml_path(), kGpuBus, {});
    EXPECT_EQ(found.bundles.size(), GetParam().bundles);
    EXPECT_EQ(found.missing.find(GetParam().call) != std::string::npos, GetParam().is_told)
        << found.missing;
    EXPECT_EQ(nvml->initialized, std::string(GetParam().call) == "nvmlShutdown" ? 1 : 0);
}
INSTANTIATE_TEST_SUITE_P(Calls, NvlinkFailureTest,
                         ::testing::Values(Failure{"nvmlInit_v2", 0, true},
                                           Failure{"nvmlDeviceGetHandleByPciBusId_v2", 0, true},
                                           Failure{"nvmlDeviceGetNvLinkState", 0, true},
                                           Failure{"nvmlDeviceGetNvLinkRemotePciInfo_v2", 0, true},
                                           Failure{"nvmlDeviceGetNvLinkRemoteDeviceType", 2, false},
                                           Failure{"nvmlDeviceGetNvLinkVersion", 2, false},
                                           Failure{"nvmlDeviceGetNvLinkCapability", 2, false},
                                           Failure{"nvmlDeviceGetFieldValues", 2, false},
                                           Failure{"nvmlDeviceGetMigMode", 2, false},
                                           Failure{"nvmlShutdown", 2, false}),
                         [](const auto &made) { return std::string(made.param.call); });

TEST_F(NvlinksTest, AnErrorOfOneLinkLeavesTheOthers)
{
    set({{.remote = kOther, .version = 2}, {.remote = "00000000:0A:00.0", .version = 2}});
    nvml->failing = "nvmlDeviceGetNvLinkState";
    nvml->calls_until_failure = 2; // the two links are fine, what comes after them is not
    EXPECT_EQ(read().bundles.size(), 2u);
}

TEST(Nvlinks, WithoutNvmlTheLoadersMessageSaysWhy)
{
    const GpuNvlinks found = read_nvlinks("libno-such-nvml.so.1", kGpuBus, {});
    EXPECT_TRUE(found.bundles.empty());
    EXPECT_NE(found.missing.find("libno-such-nvml.so.1"), std::string::npos) << found.missing;
}

TEST(Nvlinks, ALibraryThatLacksACallIsNoNvml)
{
    const GpuNvlinks found = read_nvlinks("libm.so.6", kGpuBus, {});
    EXPECT_TRUE(found.bundles.empty());
    EXPECT_NE(found.missing.find("libm.so.6 lacks nvml"), std::string::npos) << found.missing;
}

TEST(MachineTree, APairOfGpusCountsOnceWhoeverTells)
{
    MachineTree tree;
    tree.devices = {{.bus = kGpuBus}, {.bus = kOtherBus}};
    add_nvlinks(tree, kGpuBus,
                {.bundles = {{.remote = kOtherBus, .count = 2, .gbps = 25}}, .missing = {}});
    add_nvlinks(tree, kOtherBus,
                {.bundles = {{.remote = kGpuBus, .count = 2, .gbps = 25}}, .missing = {}});
    ASSERT_EQ(tree.nvlinks.size(), 1u);
    EXPECT_EQ(tree.nvlinks[0].count, 2);
}

} // namespace
} // namespace hetcoll::test
