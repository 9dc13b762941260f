// A rank's record, on the emulated GPU and its NVML, with hwloc's XML of a machine in
// place of the real one.
#include "topology_probe/probe.h"

#include "test/unit/topology_probe_boxes.h"
#include "test/unit/topology_probe_driver.h"
#include "test/unit/topology_probe_nvml.h"
#include "test/unit/topology_probe_sys.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace hetcoll::test {
namespace {

std::vector<std::string> &logged()
{
    static std::vector<std::string> lines;
    return lines;
}

Log test_log()
{
    logged().clear();
    return {.write =
                [](int level, const char *line) {
                    EXPECT_EQ(level, 1) << line;
                    logged().emplace_back(line);
                },
            .verbose = 1};
}

RankRecord probe(MachineProbe &machine, int ordinal = 0)
{
    auto record =
        machine.probe_rank({.driver = &driver(), .ordinal = ordinal, .host_id = 42, .pid = 7});
    EXPECT_TRUE(record.ok()) << record.status().message();
    return record.ok() ? *record : RankRecord{};
}

Topology without_nvlinks(Topology box)
{
    std::erase_if(box.links, [](const Link &link) { return link.kind == LinkKind::kNvlink; });
    return box;
}

// NVML knows nothing of CPUs: their link and their NUMA nodes are guesses.
Topology with_guessed_sockets(Topology box)
{
    for (Link &link : box.links) {
        link.gbps = link.kind == LinkKind::kSocket ? 10 : link.gbps;
    }
    for (Vertex &vertex : box.vertices) {
        vertex.numa = kUnknownNuma;
    }
    return box;
}

TEST(ProbeRankChild, DISABLED_AllGpusOfABox)
{
    const Box *box = nullptr;
    for (const Box &any : kBoxes) {
        box = std::string(any.name) == std::getenv("HETCOLL_TEST_BOX") ? &any : box;
    }
    ASSERT_NE(box, nullptr);
    const Topology expected = shipped(box->name);
    const TemporaryFile xml("box.xml", hwloc_xml_of(*box, false));
    const Environment hwloc("HWLOC_XMLFILE", xml.path());
    MachineProbe machine(test_log());

    std::vector<RankRecord> records;
    for (int ordinal = 0; ordinal < static_cast<int>(expected.gpus().size()); ++ordinal) {
        records.push_back(probe(machine, ordinal));
    }
    const auto placement = merge_records(records);
    ASSERT_TRUE(placement.ok()) << placement.status().message();
    ASSERT_EQ(placement->nodes.size(), 1u);
    expect_same_routes(placement->nodes[0].topology, expected);

    const auto whole = machine.probe_machine(&driver());
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    expect_same_routes(*whole, expected);
    EXPECT_EQ(whole->of_kind(VertexKind::kNic).size(), expected.of_kind(VertexKind::kNic).size());
    EXPECT_EQ(logged(), std::vector<std::string>());
}

class ProbeBoxTest : public ::testing::TestWithParam<Box> {};

TEST_P(ProbeBoxTest, AllRanksTogetherKnowTheRoutesOfTheMachine)
{
    run_on(shipped_path(GetParam().name), "ProbeRankChild.DISABLED_AllGpusOfABox",
           {std::string("HETCOLL_TEST_BOX=") + GetParam().name});
}
INSTANTIATE_TEST_SUITE_P(Boxes, ProbeBoxTest, ::testing::ValuesIn(kBoxes));

TEST(ProbeRankChild, DISABLED_AllGpusOfABoxWithoutHwloc)
{
    const Topology expected = shipped(std::getenv("HETCOLL_TEST_BOX"));
    MachineProbe machine(test_log(), {.use_hwloc = false});
    const auto found = machine.probe_machine(&driver());
    ASSERT_TRUE(found.ok()) << found.status().message();
    expect_same_routes(without_nvlinks(*found), without_nvlinks(with_guessed_sockets(expected)));
    expect_same_routes(*found, with_guessed_sockets(expected));
    EXPECT_EQ(logged(), std::vector<std::string>());
}

class ProbeBoxByNvmlTest : public ::testing::TestWithParam<Box> {};

TEST_P(ProbeBoxByNvmlTest, NvmlAloneTellsTheRoutesToo)
{
    run_on(shipped_path(GetParam().name), "ProbeRankChild.DISABLED_AllGpusOfABoxWithoutHwloc",
           {std::string("HETCOLL_TEST_BOX=") + GetParam().name});
}
INSTANTIATE_TEST_SUITE_P(Boxes, ProbeBoxByNvmlTest, ::testing::ValuesIn(kBoxes));

TEST(ProbeRank, WhatNvmlCannotTellOfPlacesIsNoError)
{
    for (const char *call :
         {"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v3",
          "nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetMaxPcieLinkGeneration",
          "nvmlDeviceGetMaxPcieLinkWidth"}) {
        LoadedFakeNvml nvml;
        MachineProbe first(test_log(), {.nvml = "", .use_hwloc = false});
        nvml->gpus[probe(first).bus];
        nvml->gpus[*parse_bus_id("0000:01:00.0")];
        nvml->failing = call;
        MachineProbe machine(test_log(), {.nvml = fake_nvml_path(), .use_hwloc = false});
        const RankRecord record = probe(machine);
        EXPECT_TRUE(record.uuid.known()) << call;
        EXPECT_LE(record.ancestor_count, 1) << call;
        EXPECT_EQ(nvml->initialized, 0) << call;
    }
}

TEST(ProbeRankChild, DISABLED_OrdinalsDoNotMatter)
{
    const Topology box = shipped("dgx1v");
    const TemporaryFile xml("box.xml", hwloc_xml_of(kBoxes[1], false));
    const Environment hwloc("HWLOC_XMLFILE", xml.path());
    MachineProbe machine(test_log());
    for (const auto &[ordinal, gpu] : {std::pair(0, 5), std::pair(1, 2)}) {
        const Vertex &vertex = box.vertices[box.gpus()[gpu]];
        const RankRecord record = probe(machine, ordinal);
        EXPECT_EQ(record.bus, vertex.bus);
        EXPECT_EQ(record.numa, vertex.numa);
        EXPECT_EQ(record.nvlink_count, 4);
        EXPECT_TRUE(record.uuid.known());
    }
    const auto whole = machine.probe_machine(&driver());
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_EQ(whole->gpus().size(), 2u);
}

TEST(ProbeRank, TheGpuIsTheOneThatTheEnvironmentMakesVisible)
{
    run_on(shipped_path("dgx1v"), "ProbeRankChild.DISABLED_OrdinalsDoNotMatter",
           {"CUDA_VISIBLE_DEVICES=5,2"});
}

TEST(ProbeRankChild, DISABLED_InstancesOfADividedGpu)
{
    LoadedFakeNvml nvml;
    nvml->gpus[*parse_bus_id("0000:07:00.0")] = {
        .links = {{.type = 2, .remote = "0000:c1:00.0", .version = 4}}, .mig = true};
    MachineProbe machine(test_log(), {.nvml = fake_nvml_path()});
    const RankRecord first = probe(machine, 0), second = probe(machine, 1);
    EXPECT_EQ(first.bus, second.bus);
    EXPECT_EQ(first.uuid.bytes[0], 0x11); // the node's name changes other bytes
    EXPECT_EQ(second.uuid.bytes[0], 0x22);
    EXPECT_EQ(first.nvlink_count, 0);
    const auto whole = machine.probe_machine(&driver());
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_EQ(whole->gpus().size(), 2u);
}

TEST(ProbeRank, InstancesOfADividedGpuAreToldApartByTheirUuids)
{
    const TemporaryFile file("mig.topology",
                             "hetcoll topology 1\n"
                             "gpu a 0000:07:00.0 uuid MIG-11111111-1111-1111-1111-111111111111\n"
                             "gpu b 0000:07:00.0 uuid MIG-22222222-2222-2222-2222-222222222222\n"
                             "cpu cpu0\n"
                             "link a cpu0 pcie 1 24\n"
                             "link b cpu0 pcie 1 24\n");
    run_on(file.path(), "ProbeRankChild.DISABLED_InstancesOfADividedGpu");
}

TEST(ProbeRankChild, DISABLED_LinksToPeersThatMustNotBeRead)
{
    MachineProbe machine(test_log());
    EXPECT_EQ(probe(machine, 0).nvlink_count, 3); // not to GPU 1
    EXPECT_EQ(probe(machine, 1).nvlink_count, 3);
    EXPECT_EQ(probe(machine, 2).nvlink_count, 4);
    const auto whole = machine.probe_machine(&driver());
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_NE(find_route(*whole, 0, 1).kind, RouteKind::kNvlink);
    EXPECT_EQ(find_route(*whole, 0, 2).kind, RouteKind::kNvlink);
}

TEST(ProbeRank, LinksToPeersThatTheDriverDeniesAreNone)
{
    run_on(shipped_path("dgx1v"), "ProbeRankChild.DISABLED_LinksToPeersThatMustNotBeRead",
           {"EMU_NO_PEER=0-1"});
}

TEST(ProbeRankChild, DISABLED_SwitchesThatLeadNowhere)
{
    MachineProbe machine(test_log());
    EXPECT_EQ(probe(machine, 0).nvlink_count, 0);
}

TEST(ProbeRank, AFabricThatIsNotSetUpLeadsNowhere)
{
    run_on(shipped_path("dgxa100"), "ProbeRankChild.DISABLED_SwitchesThatLeadNowhere",
           {"EMU_NO_PEER=all"});
}

TEST(ProbeRank, KnowsItsGpuWithoutAnyOtherSource)
{
    MachineProbe machine(test_log(), {.nvml = "", .sys = "/no/such/folder", .use_hwloc = false});
    const RankRecord record = probe(machine);
    EXPECT_EQ(record.host_id, 42u);
    EXPECT_EQ(record.pid, 7);
    EXPECT_TRUE(record.uuid.known());
    EXPECT_NE(record.bus.known, 0);
    EXPECT_NE(std::string(record.model), "");
    EXPECT_EQ(record.numa, kUnknownNuma);
    EXPECT_EQ(record.file_gpu, -1);
    EXPECT_EQ(record.ancestor_count, 0);
    EXPECT_EQ(record.nvlink_count, 0);
}

TEST(ProbeRank, WithoutHwlocSysTellsTheNumaNode)
{
    MachineProbe machine(test_log(), {.nvml = "", .use_hwloc = false});
    const BusId bus = probe(machine).bus;
    const FakeSys sys({{"bus/pci/devices/" + print_bus_id(bus) + "/numa_node", "1\n"}});
    MachineProbe with_sys(test_log(), {.nvml = "", .sys = sys.path(), .use_hwloc = false});
    EXPECT_EQ(probe(with_sys).numa, 1);
}

TEST(ProbeRank, MissingSourcesAreNamedOnceAndAtLevelOne)
{
    const TemporaryFile broken("broken.xml",
                               "<?xml version=\"1.0\"?>\n<topology version=\"9.0\"/>");
    const Environment hwloc("HWLOC_XMLFILE", broken.path());
    MachineProbe machine(test_log(), {.nvml = "libno-such-nvml.so.1"});
    (void)probe(machine);
    const std::vector<std::string> first = logged();
    (void)probe(machine);
    EXPECT_EQ(logged().size(), first.size());
    bool names_nvml = false;
    for (const std::string &line : first) {
        names_nvml = names_nvml || line.find("libno-such-nvml.so.1") != std::string::npos;
    }
    EXPECT_TRUE(names_nvml);
}

TEST(ProbeRank, ThreadsThatAskAtOnceGetTheSame)
{
    const TemporaryFile xml("box.xml", hwloc_xml_of(kBoxes[3], true));
    const Environment hwloc("HWLOC_XMLFILE", xml.path());
    MachineProbe machine(Log{});
    std::vector<RankRecord> records(4);
    std::vector<std::thread> threads;
    for (RankRecord &record : records) {
        threads.emplace_back([&] { record = probe(machine); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    for (const RankRecord &record : records) {
        EXPECT_EQ(std::memcmp(&record, &records[0], sizeof record), 0);
        EXPECT_EQ(record.nic_count, 8);
    }
}

TEST(ProbeRank, AMachineWithOtherGpusLeavesThisOneWithoutAPlace)
{
    const TemporaryFile xml("box.xml", hwloc_xml_of(kBoxes[3], true)); // GPUs elsewhere
    const Environment hwloc("HWLOC_XMLFILE", xml.path());
    MachineProbe machine(test_log(), {.nvml = ""});
    const RankRecord record = probe(machine);
    EXPECT_TRUE(record.uuid.known());
    EXPECT_EQ(record.ancestor_count, 0);
    const auto whole = machine.probe_machine(&driver());
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_EQ(whole->gpus().size(), 1u);
}

TEST(ProbeRank, ARankWithoutAGpuKnowsTheNode)
{
    const TemporaryFile xml("box.xml", hwloc_xml_of(kBoxes[3], true));
    const Environment hwloc("HWLOC_XMLFILE", xml.path());
    MachineProbe machine(test_log());
    const auto record = machine.probe_rank({.host_id = 42, .pid = 7});
    ASSERT_TRUE(record.ok());
    EXPECT_FALSE(record->uuid.known());
    EXPECT_EQ(record->bus, BusId{});
    EXPECT_EQ(record->socket_gbps, 16);
    EXPECT_EQ(record->nic_count, 8);
    const auto whole = machine.probe_machine(nullptr);
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_TRUE(whole->gpus().empty());
    EXPECT_EQ(whole->of_kind(VertexKind::kCpu).size(), 2u);
    EXPECT_EQ(whole->of_kind(VertexKind::kNic).size(), 8u);
}

TEST(ProbeRank, TheNetworkIsThatOfTheFastCardsThatAreUp)
{
    const TemporaryFile xml("box.xml", hwloc_xml_of(kBoxes[3], true));
    const Environment hwloc("HWLOC_XMLFILE", xml.path());
    const Environment this_system("HWLOC_THISSYSTEM", "1");
    std::map<std::string, std::string> files;
    const auto card = [&](const char *name, const char *state, const char *rate) {
        const std::string port = std::string("class/infiniband/") + name + "/ports/1/";
        files[port + "state"] = state;
        files[port + "rate"] = rate;
    };
    card("mlx5_0", "4: ACTIVE\n", "200 Gb/sec (4X HDR)\n");
    card("mlx5_1", "4: ACTIVE\n", "200 Gb/sec (4X HDR)\n");
    card("mlx5_2", "1: DOWN\n", "200 Gb/sec (4X HDR)\n");
    card("mlx5_3", "4: ACTIVE\n", "10 Gb/sec (1X SDR)\n"); // administration
    card("mlx5_4", "4: ACTIVE\n", "200 Gb/sec (4X HDR)\n");
    files["bus/pci/devices/0000:8d:00.0/physfn/vendor"] = "0x15b3\n"; // mlx5_4 is virtual
    const FakeSys sys(files);
    MachineProbe machine(test_log(), {.sys = sys.path()});
    const auto record = machine.probe_rank({.host_id = 42, .pid = 7});
    ASSERT_TRUE(record.ok());
    EXPECT_EQ(record->nic_count, 2);
    EXPECT_EQ(record->nic_gbps, 50);
}

TEST(ProbeRank, ADriverThatTellsOneIdentityIsEnough)
{
    cu().emulated_gpu_set_faults("cuDeviceGetUuid:+1:801,cuDeviceGetName:+1:801");
    MachineProbe machine(test_log(), {.nvml = ""});
    RankRecord record = probe(machine);
    cu().emulated_gpu_set_faults(nullptr);
    EXPECT_FALSE(record.uuid.known());
    EXPECT_NE(record.bus.known, 0);
    EXPECT_EQ(std::string(record.model), "");

    cu().emulated_gpu_set_faults("cuDeviceGetPCIBusId:+1:801,cuDeviceGetAttribute:+1:801");
    record = probe(machine);
    cu().emulated_gpu_set_faults(nullptr);
    EXPECT_TRUE(record.uuid.known());
    EXPECT_EQ(record.bus, BusId{});
    EXPECT_EQ(record.memory_gbps, 0);
}

TEST(ProbeRank, AGpuThatNobodyCanNameIsAnError)
{
    cu().emulated_gpu_set_faults("cuDeviceGetUuid:+1:801,cuDeviceGetPCIBusId:+1:801");
    MachineProbe machine(test_log(), {.nvml = ""});
    const auto record = machine.probe_rank({.driver = &driver(), .ordinal = 0});
    cu().emulated_gpu_set_faults(nullptr);
    ASSERT_FALSE(record.ok());
    EXPECT_NE(record.status().message().find("cuDeviceGetPCIBusId"), std::string::npos)
        << record.status().message();
}

TEST(ProbeRank, TheOnlyDeviceThatUcxMayUseIsTheAdapter)
{
    MachineProbe machine(test_log(), {.nvml = "", .use_hwloc = false});
    const auto adapter = [&](const std::string &devices) {
        const auto record = machine.probe_rank({.host_id = 42, .net_devices = devices});
        return record.ok() ? std::string(record->adapter) : "error";
    };
    EXPECT_EQ(adapter("mlx5_0:1"), "mlx5_0");
    EXPECT_EQ(adapter("eth0"), "eth0");
    for (const std::string several :
         {"", "all", "mlx5_0:1,mlx5_1:1", "^mlx5_0:1", "mlx5_*", "mlx5_[0-1]:1", "a b"}) {
        EXPECT_EQ(adapter(several), "") << several;
    }
    EXPECT_EQ(adapter(std::string(40, 'x')), "") << "too long for a record";
}

TEST(ProbeRank, AnOrdinalThatIsNotThereIsAnError)
{
    MachineProbe machine(test_log(), {.nvml = ""});
    EXPECT_FALSE(machine.probe_rank({.driver = &driver(), .ordinal = 99}).ok());
}

} // namespace
} // namespace hetcoll::test
