// Topology files as the emulated GPU reads them, and the ways that bytes take.
#include "emulated_gpu/machine.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

using namespace emulated_gpu;

// Two sockets; gpu0 and gpu1 under one switch, gpu2 under another one, gpu3 at the other socket.
constexpr const char *kMixed = R"(# a comment
hetcoll topology 1
machine Mixed box
gpu gpu0 0000:06:00.0 numa 0 model V100 # another
gpu gpu1 0000:07:00.0 numa 0 adapter mlx5_0
gpu gpu2 85:00.1
gpu gpu3 - numa 1 uuid GPU-00010203-0405-0607-0809-0a0b0c0d0e0f
pcie plx0
pcie plx1
cpu cpu0 numa 0
cpu cpu1 numa 1
nic mlx5_0 0000:05:00.0
link gpu0 gpu3 nvlink 2 25
link gpu0 plx0 pcie 1 12
link gpu1 plx0 pcie 1 12
link mlx5_0 plx0 pcie 1 12
link gpu2 plx1 pcie 1 12
link plx0 cpu0 pcie 1 12
link plx1 cpu0 pcie 1 12
link gpu3 cpu1 pcie 1 12
link cpu0 cpu1 socket 1 9.6
)";

constexpr const char *kSwitched = R"(hetcoll topology 1
gpu a 01:00.0
gpu b 02:00.0
gpu c 03:00.0
nvswitch s0
nvswitch s1
nvswitch s2
link a s0 nvlink 2 25
link a s1 nvlink 2 25
link b s0 nvlink 1 25
link b s1 nvlink 1 25
link c s2 nvlink 4 25
link s0 s2 nvlink 3 25
)";

Machine machine_of(const char *text)
{
    Machine machine;
    EXPECT_EQ(parse_machine(text, machine), "");
    return machine;
}

std::string way(const Routes &routes, int from, int to)
{
    std::string text;
    for (const int direction : routes.between(from, to)) {
        const auto &[name, gbps] = routes.directions()[static_cast<std::size_t>(direction)];
        text += (text.empty() ? "" : " ") + name + ":" + std::to_string(gbps).substr(0, 4);
    }
    return text;
}

TEST(EmulatedMachineTest, AFileIsReadWhole)
{
    const Machine machine = machine_of(kMixed);
    EXPECT_EQ(machine.name, "Mixed box");
    ASSERT_EQ(machine.gpus.size(), 4u);
    EXPECT_EQ(machine.gpu(0).bus, (BusId{0, 6, 0, 0}));
    EXPECT_EQ(machine.gpu(0).model, "V100");
    EXPECT_EQ(machine.gpu(2).bus, (BusId{0, 0x85, 0, 1}));
    EXPECT_EQ(machine.gpu(3).uuid[15], 0x0f);
    EXPECT_EQ(machine.links.size(), 9u);
}

TEST(EmulatedMachineTest, DirectNvlinksComeFirst)
{
    const Routes routes(machine_of(kMixed));
    EXPECT_EQ(way(routes, 0, 3), "gpu0_gpu3:50.0");
    EXPECT_EQ(way(routes, 3, 0), "gpu3_gpu0:50.0");
    EXPECT_TRUE(routes.uses_nvlink(0, 3));
}

TEST(EmulatedMachineTest, ElseThePathOverPcieAndSockets)
{
    const Routes routes(machine_of(kMixed));
    EXPECT_EQ(way(routes, 0, 1), "gpu0_plx0:12.0 plx0_gpu1:12.0");
    EXPECT_EQ(way(routes, 1, 3), "gpu1_plx0:12.0 plx0_cpu0:12.0 cpu0_cpu1:9.60 cpu1_gpu3:12.0");
    EXPECT_TRUE(routes.crosses_sockets(1, 3));
    EXPECT_FALSE(routes.crosses_sockets(0, 2));
}

TEST(EmulatedMachineTest, HostMemoryHangsOnTheNearestCpu)
{
    const Routes routes(machine_of(kMixed));
    EXPECT_EQ(way(routes, 2, kHostMemory), "gpu2_plx1:12.0 plx1_cpu0:12.0");
    EXPECT_EQ(way(routes, kHostMemory, 3), "cpu1_gpu3:12.0");
}

TEST(EmulatedMachineTest, SwitchesMeanAPortEachWay)
{
    const Routes routes(machine_of(kSwitched));
    EXPECT_EQ(way(routes, 0, 1), "a_nvswitch:100. nvswitch_b:50.0");
    EXPECT_EQ(way(routes, 1, 0), "b_nvswitch:50.0 nvswitch_a:100.");
    EXPECT_EQ(way(routes, 0, 2), "a_nvswitch:100. s0_s2:75.0 nvswitch_c:100.");
    EXPECT_EQ(way(routes, 0, kHostMemory), ""); // there is no way
}

TEST(EmulatedMachineTest, AFragmentNumbersItsGpusAnew)
{
    Machine machine = machine_of(kMixed);
    EXPECT_EQ(keep_gpus(machine, "3,0-1"), "");
    ASSERT_EQ(machine.gpus.size(), 3u);
    const Routes routes(machine);
    EXPECT_EQ(way(routes, 0, 1), "gpu3_gpu0:50.0");
    EXPECT_EQ(way(routes, 1, 2), "gpu0_plx0:12.0 plx0_gpu1:12.0");
}

TEST(EmulatedMachineTest, BadListsOfGpusAreNamed)
{
    for (const char *list : {"", "4", "0,0", "2-1", "0,", "0;1", "1-"}) {
        Machine machine = machine_of(kMixed);
        EXPECT_NE(keep_gpus(machine, list), "") << list;
    }
}

TEST(EmulatedMachineTest, BadFilesAreNamedWithTheLine)
{
    for (const char *text :
         {"gpu gpu0 -\n", "hetcoll topology 2\ngpu g -\n", "hetcoll topology 1\n",
          "hetcoll topology 1\ngpu g\n", "hetcoll topology 1\ngpu g 0000:06\n",
          "hetcoll topology 1\ngpu g -\ngpu g -\n",
          "hetcoll topology 1\ngpu g -\nlink g h pcie 1 1\n",
          "hetcoll topology 1\ngpu g -\ncpu c\nlink g c pcie 0 1\n",
          "hetcoll topology 1\ngpu g -\ncpu c\nlink g c ether 1 1\n",
          "hetcoll topology 1\ngpu g -\ncpu c\nlink g c pcie 1 fast\n",
          "hetcoll topology 1\ngpu g - numa\n", "hetcoll topology 1\nrouter r\n"}) {
        Machine machine;
        EXPECT_NE(parse_machine(text, machine), "") << text;
    }
    Machine machine;
    EXPECT_EQ(parse_machine("hetcoll topology 1\n\nrouter r\n", machine).substr(0, 7), "line 3:");
}

} // namespace
} // namespace hetcoll::test
