// The driver on a machine of EMU_LINKS: its devices, what its links carry, and that they take time.
#include "test/unit/emulated_gpu_driver.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

namespace hetcoll::test {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

constexpr const char *kBox = R"(hetcoll topology 1
machine box
gpu gpu0 0000:06:00.0
gpu gpu1 0000:0a:00.0 uuid GPU-00010203-0405-0607-0809-0a0b0c0d0e0f
gpu gpu2 0001:85:00.0
pcie plx0
cpu cpu0
cpu cpu1
link gpu0 gpu1 nvlink 2 25
link gpu0 plx0 pcie 1 12
link gpu1 plx0 pcie 1 12
link plx0 cpu0 pcie 1 12
link gpu2 cpu1 pcie 1 12
link cpu0 cpu1 socket 1 10
)";

// A file with kBox in it, for the children of a test.
class BoxFile {
public:
    BoxFile() : path_("links_test." + std::to_string(getpid()) + ".topology")
    {
        std::ofstream(path_) << kBox;
    }
    ~BoxFile() { unlink(path_.c_str()); }
    BoxFile(const BoxFile &) = delete;
    BoxFile &operator=(const BoxFile &) = delete;

    // Runs a test on this machine and an emulated node of its own.
    [[nodiscard]] ChildResult run(const std::string &test, const std::string &gpus = "",
                                  std::vector<std::string> more = {}) const
    {
        more.push_back("EMU_LINKS=" + path_ + gpus);
        more.push_back("EMU_NODE=links" + std::to_string(getpid()));
        return run_in_child("EmulatedLinksChild.DISABLED_" + test, more);
    }

private:
    std::string path_;
};

std::string bus_of(CUdevice device)
{
    char text[32] = "";
    EXPECT_EQ(cu().cuDeviceGetPCIBusId(text, sizeof text, device), CUDA_SUCCESS);
    return text;
}

TEST(EmulatedLinksChild, DISABLED_Devices)
{
    int count = 0, value = 0;
    EXPECT_EQ(cu().cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(bus_of(0), "0000:06:00.0");
    EXPECT_EQ(bus_of(1), "0000:0A:00.0");
    EXPECT_EQ(bus_of(2), "0001:85:00.0");
    CUdevice found = -1;
    EXPECT_EQ(cu().cuDeviceGetByPCIBusId(&found, "0001:85:00.0"), CUDA_SUCCESS);
    EXPECT_EQ(found, 2);
    EXPECT_EQ(cu().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 2), CUDA_SUCCESS);
    EXPECT_EQ(value, 0x85);
    EXPECT_EQ(cu().cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 2),
              CUDA_SUCCESS);
    EXPECT_EQ(value, 1);
}

TEST(EmulatedLinksTest, TheDevicesAreThoseOfTheFile)
{
    const ChildResult child = BoxFile().run("Devices");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedLinksChild, DISABLED_Fragment)
{
    int count = 0;
    EXPECT_EQ(cu().cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 2);
    EXPECT_EQ(bus_of(0), "0001:85:00.0");
    EXPECT_EQ(bus_of(1), "0000:06:00.0");
}

TEST(EmulatedLinksTest, AFragmentIsSomeOfThem)
{
    const ChildResult child = BoxFile().run("Fragment", ":2,0");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedLinksChild, DISABLED_Peers)
{
    for (const auto &[a, b, reach, rank] : {std::tuple{0, 1, 1, 0}, {0, 2, 0, 1}, {2, 1, 0, 1}}) {
        int can = -1, value = -1;
        EXPECT_EQ(cu().cuDeviceCanAccessPeer(&can, a, b), CUDA_SUCCESS);
        EXPECT_EQ(can, reach) << a << b;
        EXPECT_EQ(
            cu().cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, a, b),
            CUDA_SUCCESS);
        EXPECT_EQ(value, reach) << a << b;
        EXPECT_EQ(
            cu().cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, a, b),
            CUDA_SUCCESS);
        EXPECT_EQ(value, rank) << a << b;
    }
}

TEST(EmulatedLinksTest, PeersAcrossSocketsCanBeOutOfReach)
{
    const ChildResult child = BoxFile().run("Peers", "", {"EMU_NO_PEER=sockets"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedLinksChild, DISABLED_Count)
{
    const PrimaryContext first(0);
    const CUdeviceptr here = allocate(kBytes);
    const PrimaryContext second(1);
    const CUdeviceptr there = allocate(kBytes);
    const PrimaryContext third(2);
    const CUdeviceptr far = allocate(kBytes);
    std::vector<char> host(kBytes);
    EXPECT_EQ(cu().cuMemcpyDtoD(there, here, 1000), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemcpyDtoD(far, there, 200), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemcpyDtoD(here + 4096, here, 50), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemcpyHtoD(far, host.data(), 30), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemcpyDtoH(host.data(), here, 7), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    const auto counted = [](const char *name) { return cu().emulated_gpu_calls(name); };
    EXPECT_EQ(counted("bytes_0_1"), 1000u);
    EXPECT_EQ(counted("bytes_1_0"), 0u);
    EXPECT_EQ(counted("bytes_1_2"), 200u);
    EXPECT_EQ(counted("bytes_h_2"), 30u);
    EXPECT_EQ(counted("bytes_0_h"), 7u);
    EXPECT_EQ(counted("link_gpu0_gpu1"), 1000u);
    EXPECT_EQ(counted("link_gpu1_plx0"), 200u);
    EXPECT_EQ(counted("link_plx0_cpu0"), 207u);
    EXPECT_EQ(counted("link_cpu0_cpu1"), 200u);
    EXPECT_EQ(counted("link_cpu1_gpu2"), 230u);
    EXPECT_EQ(cu().emulated_gpu_link_bytes(0, 1), 1000u);
    EXPECT_EQ(cu().emulated_gpu_link_bytes(-1, 2), 30u);
    EXPECT_EQ(cu().emulated_gpu_link_bytes(3, 0), 0u);
}

TEST(EmulatedLinksTest, EveryPairAndEveryLinkIsCounted)
{
    const ChildResult child = BoxFile().run("Count");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

// EXPECT_US: a copy of 4 KiB takes as many microseconds at least.
TEST(EmulatedLinksChild, DISABLED_TakeTime)
{
    const PrimaryContext first(0);
    const CUdeviceptr here = allocate(kBytes);
    const PrimaryContext second(1);
    const CUdeviceptr there = allocate(kBytes);
    fill(here, 42, 1);
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    EXPECT_EQ(cu().cuMemcpyDtoD(there, here, 4096), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_GE(Clock::now() - start, std::chrono::microseconds(std::atoi(std::getenv("EXPECT_US"))));
    EXPECT_EQ(cu().emulated_gpu_link_bytes(0, 1), 4096u);
}

TEST(EmulatedLinksTest, ACopyEndsNoEarlierThanItsLinkAllows)
{
    // 50 GB/s over a million
    const ChildResult child =
        BoxFile().run("TakeTime", "", {"EMU_LINK_SCALE=1e-6", "EXPECT_US=81920"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedLinksTest, TheFirstByteWaitsForTheLatency)
{
    const ChildResult child = BoxFile().run(
        "TakeTime", "", {"EMU_LINK_SCALE=1e-6", "EMU_LINK_LATENCY_US=50000", "EXPECT_US=131920"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedLinksTest, OtherLinksOnOneNodeAreRefused)
{
    const BoxFile box;
    const ChildResult child = box.run("Refused");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedLinksChild, DISABLED_Refused)
{
    const PrimaryContext context; // this process stays on the node while its child tries
    const ChildResult child =
        run_in_child("EmulatedLinksChild.DISABLED_Count", {"EMU_LINK_SCALE=2"});
    EXPECT_NE(child.exit_status, 0);
    EXPECT_NE(child.errors.find("EMU_LINK_SCALE"), std::string::npos) << child.errors;
}

TEST(EmulatedLinksChild, DISABLED_Start) { const PrimaryContext context; }

TEST(EmulatedLinksTest, AFileThatCannotBeReadIsNamed)
{
    const BoxFile box;
    EXPECT_NE(box.run("Start", ".gone").errors.find("cannot be read"), std::string::npos);
    EXPECT_NE(box.run("Start", ":7").errors.find("'7' is not a list"), std::string::npos);
}

} // namespace
} // namespace hetcoll::test
