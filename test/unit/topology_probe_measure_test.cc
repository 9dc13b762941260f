#include "topology_probe/measure.h"

#include "test/unit/topology_probe_driver.h"
#include "topology/route.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

constexpr LinkMeasureOptions kShort{.bytes = 4096, .copies_in_a_row = 3, .samples = 2};

std::uint64_t calls(const char *name) { return cu().emulated_gpu_calls(name); }

TEST(Measure, CopiesAsOftenAsItIsTold)
{
    auto context = retain_primary_context(driver(), 0);
    ASSERT_TRUE(context.ok());
    const Device device(driver(), *context, 0);
    const ContextScope scope(driver(), *context);
    const std::uint64_t before = calls("cuMemcpyAsync");
    const auto rates = measure_gpu(device, kShort);
    ASSERT_TRUE(rates.ok()) << rates.status().message();
    EXPECT_GT(rates->to_host, 0);
    EXPECT_GT(rates->from_host, 0);
    EXPECT_GT(rates->memory, 0);
    EXPECT_EQ(calls("cuMemcpyAsync") - before,
              3u * 3 * 3); // places, samples and one before, copies
}

TEST(Measure, AFailingCopyIsTheDriversError)
{
    cu().emulated_gpu_set_faults("cuMemcpyAsync:+1:999");
    const auto measured = measure_links(driver(), kShort);
    cu().emulated_gpu_set_faults(nullptr);
    ASSERT_FALSE(measured.ok());
    EXPECT_NE(measured.status().message().find("cuMemcpyAsync failed"), std::string::npos)
        << measured.status().message();
}

TEST(Measure, NoMemoryIsTheDriversError)
{
    for (const char *fault :
         {"cuMemAlloc:2:2", "cuMemAlloc:3:2", "cuMemAlloc:4:2", "cuMemHostAlloc:1:2",
          "cuStreamCreateWithPriority:1:2", "cuEventCreate:1:2", "cuDevicePrimaryCtxRetain:1:2"}) {
        cu().emulated_gpu_set_faults(fault);
        const auto measured = measure_links(driver(), kShort);
        cu().emulated_gpu_set_faults(nullptr);
        ASSERT_FALSE(measured.ok()) << fault;
        EXPECT_EQ(measured.status().code(), Errc::kNoMemory) << fault;
    }
}

TEST(MeasureChild, DISABLED_AllPairs)
{
    const auto measured = measure_links(driver(), kShort);
    ASSERT_TRUE(measured.ok()) << measured.status().message();
    ASSERT_EQ(measured->gpus.size(), 3u);
    for (int from = 0; from < 3; ++from) {
        EXPECT_GT(measured->gpus[from].to_host, 0);
        EXPECT_NE(measured->gpus[from].bus.known, 0);
        for (int to = 0; to < 3; ++to) {
            const bool denied = (from == 0 && to == 1) || (from == 1 && to == 0);
            EXPECT_EQ(measured->between(from, to) > 0, from != to && !denied)
                << from << " to " << to;
        }
    }
    // Nine copies: two samples and one before, three each.
    EXPECT_EQ(calls("bytes_0_2"), 9u * 4096);
    EXPECT_EQ(calls("bytes_0_1"), 0u);
    EXPECT_EQ(calls("bytes_0_h"), 9u * 4096);
}

TEST(Measure, AllPairsThatMayReadEachOtherAreMeasured)
{
    run_on(shipped_path("dgx1v-014"), "MeasureChild.DISABLED_AllPairs", {"EMU_NO_PEER=0-1"});
}

// The result of measuring this topology, times a factor.
MeasuredLinks measured_on(const Topology &topology, double factor)
{
    MeasuredLinks measured;
    for (const int gpu : topology.gpus()) {
        const double host = find_host_route(topology, gpu).gbps * factor;
        measured.gpus.push_back({.bus = topology.vertices[gpu].bus,
                                 .uuid = topology.vertices[gpu].uuid,
                                 .to_host = host,
                                 .from_host = host * 2});
        for (const int other : topology.gpus()) {
            measured.peers.push_back(find_route(topology, gpu, other).gbps * factor);
        }
    }
    return measured;
}

class MeasuredRatesTest : public ::testing::TestWithParam<const char *> {};

TEST_P(MeasuredRatesTest, AllRoutesGetTheMeasuredRates)
{
    const Topology listed = shipped(GetParam());
    for (const double factor : {0.9, 1.0, 1.5}) {
        const Topology real = with_measured_rates(listed, measured_on(listed, factor));
        for (const int a : listed.gpus()) {
            EXPECT_NEAR(find_host_route(real, a).gbps, factor * find_host_route(listed, a).gbps,
                        1e-9);
            for (const int b : listed.gpus()) {
                const Route route = find_route(listed, a, b);
                EXPECT_NEAR(find_route(real, a, b).gbps, factor * route.gbps, 1e-9)
                    << a << " " << b;
            }
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Boxes, MeasuredRatesTest,
                         ::testing::Values("dgx1p", "dgx1v", "dgx2", "dgxa100", "dgxh100",
                                           "pcie8"));

TEST(MeasuredRates, WhatWasNotMeasuredKeepsItsListSpeed)
{
    const Topology listed = shipped("dgx1v");
    MeasuredLinks measured = measured_on(shipped("dgx1v:0-1"), 0.5);
    measured.peers.assign(4, 0);
    const Topology real = with_measured_rates(listed, measured);
    EXPECT_EQ(find_route(real, 0, 1).gbps, find_route(listed, 0, 1).gbps);
    EXPECT_EQ(find_host_route(real, 2).gbps, find_host_route(listed, 2).gbps);
    EXPECT_EQ(find_host_route(real, 0).gbps, find_host_route(listed, 0).gbps / 2);
}

TEST(MeasuredRates, GpusThatTheTopologyLacksDoNotMatter)
{
    const Topology listed = shipped("pcie8");
    EXPECT_EQ(with_measured_rates(listed, measured_on(shipped("dgxa100"), 0.5)), listed);
}

TEST(MeasuredRates, InstancesOfADividedGpuAreFoundByTheirUuids)
{
    Topology listed = shipped("pcie8:0-1");
    const std::vector<int> gpus = listed.gpus();
    listed.vertices[gpus[1]].bus = listed.vertices[gpus[0]].bus;
    listed.vertices[gpus[0]].uuid.bytes = {1};
    listed.vertices[gpus[1]].uuid.bytes = {2};
    MeasuredLinks measured = measured_on(listed, 1);
    measured.gpus[1].to_host = 3;
    const Topology real = with_measured_rates(listed, measured);
    EXPECT_EQ(find_host_route(real, gpus[0]).gbps, 12);
    EXPECT_EQ(find_host_route(real, gpus[1]).gbps, 3);
}

} // namespace
} // namespace hetcoll::test
