#include "topology_probe/sys_files.h"

#include "test/unit/topology_probe_sys.h"
#include "topology_probe/machine_tree.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

const BusId kBus = *parse_bus_id("0000:06:00.0");
constexpr const char *kDevice = "bus/pci/devices/0000:06:00.0/";

TEST(SysFiles, AnIdleGpusLinkCountsWithWhatItCanDo)
{
    const FakeSys sys({{kDevice + std::string("max_link_speed"), "8.0 GT/s PCIe\n"},
                       {kDevice + std::string("max_link_width"), "16\n"},
                       {kDevice + std::string("current_link_speed"), "2.5 GT/s PCIe\n"},
                       {kDevice + std::string("current_link_width"), "16\n"}});
    const PcieEnd end = read_pcie_end(sys.path(), kBus);
    EXPECT_EQ(end.gigatransfers, 8);
    EXPECT_EQ(end.width, 16);
}

TEST(SysFiles, ASlotMayHaveFewerLanesThanTheCard)
{
    const FakeSys sys({{kDevice + std::string("max_link_speed"), "16.0 GT/s PCIe\n"},
                       {kDevice + std::string("max_link_width"), "16\n"},
                       {kDevice + std::string("current_link_width"), "8\n"}});
    EXPECT_EQ(read_pcie_end(sys.path(), kBus).width, 8);
}

TEST(SysFiles, WhatAVirtualMachineDoesNotTellIsZero)
{
    const FakeSys sys({{kDevice + std::string("max_link_speed"), "Unknown\n"},
                       {kDevice + std::string("max_link_width"), "255\n"},
                       {kDevice + std::string("current_link_width"), "0\n"}});
    const PcieEnd end = read_pcie_end(sys.path(), kBus);
    EXPECT_EQ(end.gigatransfers, 0);
    EXPECT_EQ(end.width, 0);
}

TEST(SysFiles, NothingIsThere)
{
    const PcieEnd end = read_pcie_end("/no/such/folder", kBus);
    EXPECT_EQ(end.gigatransfers, 0);
    EXPECT_EQ(end.width, 0);
    EXPECT_EQ(read_numa("/no/such/folder", kBus), kUnknownNuma);
    EXPECT_FALSE(is_virtual_function("/no/such/folder", kBus));
    EXPECT_LT(read_ethernet_gbps("/no/such/folder", "eth0"), 0);
    EXPECT_LT(read_infiniband_gbps("/no/such/folder", "mlx5_0"), 0);
}

TEST(SysFiles, ANumaNodeOfMinusOneIsUnknown)
{
    const FakeSys sys({{kDevice + std::string("numa_node"), "-1\n"}});
    EXPECT_EQ(read_numa(sys.path(), kBus), kUnknownNuma);
    const FakeSys other({{kDevice + std::string("numa_node"), "1\n"}});
    EXPECT_EQ(read_numa(other.path(), kBus), 1);
}

TEST(SysFiles, EthernetIsInMegabitsAndMayBeDown)
{
    const FakeSys sys({{"class/net/up/operstate", "up\n"},
                       {"class/net/up/speed", "100000\n"},
                       {"class/net/down/operstate", "down\n"},
                       {"class/net/virtio/operstate", "unknown\n"},
                       {"class/net/virtio/speed", "-1\n"}});
    EXPECT_EQ(read_ethernet_gbps(sys.path(), "up"), 12.5);
    EXPECT_LT(read_ethernet_gbps(sys.path(), "down"), 0);
    EXPECT_EQ(read_ethernet_gbps(sys.path(), "virtio"), 0);
}

TEST(SysFiles, ThePortsOfAnInfinibandCardThatAreUpCountTogether)
{
    const std::string ports = "class/infiniband/mlx4_0/ports/";
    const FakeSys sys({{ports + "1/state", "4: ACTIVE\n"},
                       {ports + "1/rate", "200 Gb/sec (4X HDR)\n"},
                       {ports + "2/state", "1: DOWN\n"},
                       {ports + "2/rate", "10 Gb/sec (4X SDR)\n"},
                       {ports + "3/state", "4: ACTIVE\n"},
                       {ports + "3/rate", "100 Gb/sec (4X EDR)\n"}});
    EXPECT_EQ(read_infiniband_gbps(sys.path(), "mlx4_0"), 37.5);
}

TEST(Rates, PcieCountsWithWhatTransfersReach)
{
    EXPECT_EQ(effective_pcie_gbps(raw_pcie_gbps(8, 16)), 12);
    EXPECT_EQ(effective_pcie_gbps(raw_pcie_gbps(16, 16)), 24);
    EXPECT_EQ(effective_pcie_gbps(raw_pcie_gbps(32, 16)), 48);
    EXPECT_EQ(effective_pcie_gbps(raw_pcie_gbps(8, 8)), 6);
    EXPECT_NEAR(effective_pcie_gbps(raw_pcie_gbps(2.5, 16)), 3, 0.1);
    EXPECT_NEAR(effective_pcie_gbps(raw_pcie_gbps(64, 16)), 92, 1);
    EXPECT_EQ(effective_pcie_gbps(15.753846), 12); // as hwloc has it
    EXPECT_EQ(effective_pcie_gbps(0), 12);         // unknown
}

TEST(Rates, SocketsByTheirCpu)
{
    EXPECT_EQ(socket_gbps_of({.vendor = "GenuineIntel", .family = 6, .model = 79}), 9.6);
    EXPECT_EQ(socket_gbps_of({.vendor = "GenuineIntel", .family = 6, .model = 106}), 10);
    EXPECT_EQ(socket_gbps_of({.vendor = "GenuineIntel", .family = 6, .model = 143}), 22);
    EXPECT_EQ(socket_gbps_of({.vendor = "AuthenticAMD", .family = 25, .model = 1}), 16);
    EXPECT_GT(socket_gbps_of({}), 0);
}

} // namespace
} // namespace hetcoll::test
