// The emulated NVML: the same machine as the driver's.
#include "emulated_gpu/nvml_abi.h"
#include "test/unit/emulated_gpu_driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>

namespace hetcoll::test {
namespace {

// The ABI that programs compiled with NVIDIA's header expect.
static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, busId) == 36);
static_assert(sizeof(nvmlFieldValue_t) == 40 && offsetof(nvmlFieldValue_t, value) == 32);

constexpr const char *kBox = R"(hetcoll topology 1
machine box
gpu gpu0 0000:06:00.0 model Tesla-V100
gpu gpu1 0000:07:00.0 uuid GPU-00010203-0405-0607-0809-0a0b0c0d0e0f
gpu gpu2 0000:0a:00.0
gpu gpu3 0000:85:00.0
nvswitch nvs0
pcie plx0
pcie plx1
cpu cpu0
cpu cpu1
link gpu0 gpu1 nvlink 2 25
link gpu0 nvs0 nvlink 1 25
link gpu0 plx0 pcie 1 12
link gpu1 plx0 pcie 1 12
link gpu2 plx1 pcie 1 24
link plx0 cpu0 pcie 1 12
link plx1 cpu0 pcie 1 12
link gpu3 cpu1 pcie 1 12
link cpu0 cpu1 socket 1 10
)";

ChildResult run(const std::string &test, const char *hostile = "EMU_HOSTILE=0")
{
    const std::string path = "nvml_test." + std::to_string(getpid()) + ".topology";
    std::ofstream(path) << kBox;
    ChildResult child = run_in_child("EmulatedNvmlChild.DISABLED_" + test,
                                     {"EMU_LINKS=" + path, "EMU_NO_PEER=sockets",
                                      "EMU_NODE=nvml" + std::to_string(getpid()), hostile});
    unlink(path.c_str());
    return child;
}

// The library's entry points, found as programs find them.
#define HETCOLL_TEST_NVML(name) reinterpret_cast<decltype(&::name)>(dlsym(library(), #name))

void *library()
{
    static void *const loaded = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(loaded, nullptr) << dlerror();
    return loaded;
}

nvmlDevice_t device(unsigned index)
{
    nvmlDevice_t found = nullptr;
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetHandleByIndex_v2)(index, &found), NVML_SUCCESS);
    return found;
}

TEST(EmulatedNvmlTest, NothingWorksBeforeInit)
{
    unsigned count = 0;
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
}

TEST(EmulatedNvmlTest, WithoutAFileThereIsABoxWithoutNvlinks)
{
    ASSERT_EQ(HETCOLL_TEST_NVML(nvmlInit_v2)(), NVML_SUCCESS);
    unsigned count = 0;
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
    EXPECT_EQ(count, 1u);
    nvmlEnableState_t active = NVML_FEATURE_ENABLED;
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetNvLinkState)(device(0), 0, &active),
              NVML_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlShutdown)(), NVML_SUCCESS);
}

TEST(EmulatedNvmlChild, DISABLED_Devices)
{
    ASSERT_EQ(HETCOLL_TEST_NVML(nvmlInit_v2)(), NVML_SUCCESS);
    nvmlDevice_t by_bus = nullptr, by_uuid = nullptr;
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetHandleByPciBusId_v2)("00000000:07:00.0", &by_bus),
              NVML_SUCCESS);
    EXPECT_EQ(by_bus, device(1));
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetHandleByPciBusId_v2)("0000:99:00.0", &by_bus),
              NVML_ERROR_NOT_FOUND);
    char uuid[96] = "";
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetUUID)(device(1), uuid, sizeof uuid), NVML_SUCCESS);
    EXPECT_EQ(std::string(uuid).substr(0, 23), "GPU-00010203-0405-0607-");
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetUUID)(device(1), uuid, 40),
              NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetHandleByUUID)(uuid, &by_uuid), NVML_SUCCESS);
    EXPECT_EQ(by_uuid, device(1));
    nvmlPciInfo_t pci;
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetPciInfo_v3)(device(3), &pci), NVML_SUCCESS);
    EXPECT_STREQ(pci.busId, "00000000:85:00.0");
    EXPECT_STREQ(pci.busIdLegacy, "0000:85:00.0");
    EXPECT_EQ(pci.bus, 0x85u);
    for (const auto &[index, expected] : {std::pair{0u, 3u}, {2u, 4u}}) {
        unsigned generation = 0;
        EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetMaxPcieLinkGeneration)(device(index), &generation),
                  NVML_SUCCESS);
        EXPECT_EQ(generation, expected);
    }
}

TEST(EmulatedNvmlTest, DevicesAreFoundByBusIdAndUuid)
{
    const ChildResult child = run("Devices");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedNvmlChild, DISABLED_SameUuid)
{
    ASSERT_EQ(HETCOLL_TEST_NVML(nvmlInit_v2)(), NVML_SUCCESS);
    for (int i = 0; i < 4; ++i) {
        CUuuid driver;
        EXPECT_EQ(cu().cuDeviceGetUuid_v2(&driver, i), CUDA_SUCCESS);
        std::string text;
        for (const char byte : driver.bytes) {
            char digits[3];
            std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
            text += digits;
        }
        char uuid[96] = "";
        EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetUUID)(device(static_cast<unsigned>(i)), uuid,
                                                       sizeof uuid),
                  NVML_SUCCESS);
        std::string nvml;
        for (const char letter : std::string(uuid).substr(4)) {
            nvml += letter == '-' ? "" : std::string(1, letter);
        }
        EXPECT_EQ(nvml, text);
    }
}

TEST(EmulatedNvmlTest, TheDriverKnowsTheSameUuids)
{
    const ChildResult child = run("SameUuid");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedNvmlChild, DISABLED_Nvlinks)
{
    ASSERT_EQ(HETCOLL_TEST_NVML(nvmlInit_v2)(), NVML_SUCCESS);
    const auto remote = HETCOLL_TEST_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2);
    const auto type = HETCOLL_TEST_NVML(nvmlDeviceGetNvLinkRemoteDeviceType);
    nvmlPciInfo_t pci;
    nvmlIntNvLinkDeviceType_t kind = NVML_NVLINK_DEVICE_TYPE_UNKNOWN;
    for (const unsigned link : {0u, 1u}) {
        EXPECT_EQ(remote(device(0), link, &pci), NVML_SUCCESS);
        EXPECT_EQ(pci.bus, 7u);
        EXPECT_EQ(type(device(0), link, &kind), NVML_SUCCESS);
        EXPECT_EQ(kind, NVML_NVLINK_DEVICE_TYPE_GPU);
    }
    EXPECT_EQ(type(device(0), 2, &kind), NVML_SUCCESS);
    EXPECT_EQ(kind, NVML_NVLINK_DEVICE_TYPE_SWITCH);
    EXPECT_EQ(type(device(0), 3, &kind), NVML_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(type(device(2), 0, &kind), NVML_ERROR_NOT_SUPPORTED);
    unsigned version = 0;
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetNvLinkVersion)(device(0), 0, &version), NVML_SUCCESS);
    EXPECT_EQ(version, unsigned{NVML_NVLINK_VERSION_2_0});
    nvmlFieldValue_t speed{};
    speed.fieldId = NVML_FI_DEV_NVLINK_GET_SPEED;
    speed.scopeId = 1;
    EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetFieldValues)(device(0), 1, &speed), NVML_SUCCESS);
    EXPECT_EQ(speed.nvmlReturn, NVML_SUCCESS);
    EXPECT_EQ(speed.value.uiVal, 25000u);
}

TEST(EmulatedNvmlChild, DISABLED_HostileNvlinks)
{
    ASSERT_EQ(HETCOLL_TEST_NVML(nvmlInit_v2)(), NVML_SUCCESS);
    const auto state = HETCOLL_TEST_NVML(nvmlDeviceGetNvLinkState);
    nvmlEnableState_t active = NVML_FEATURE_DISABLED;
    EXPECT_EQ(state(device(0), 0, &active), NVML_SUCCESS);
    EXPECT_EQ(state(device(0), 1, &active), NVML_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(state(device(0), 2, &active), NVML_SUCCESS);
    EXPECT_EQ(state(device(0), 3, &active), NVML_SUCCESS);
    EXPECT_EQ(active, NVML_FEATURE_ENABLED);
    EXPECT_EQ(state(device(0), 4, &active), NVML_ERROR_INVALID_ARGUMENT);
    for (const auto &[link, result] :
         {std::pair{0u, NVML_SUCCESS}, {1u, NVML_ERROR_NOT_SUPPORTED}, {3u, NVML_SUCCESS}}) {
        nvmlFieldValue_t field{};
        field.fieldId = NVML_FI_DEV_NVLINK_GET_STATE;
        field.scopeId = link;
        EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetFieldValues)(device(0), 1, &field), NVML_SUCCESS);
        EXPECT_EQ(field.nvmlReturn, result);
    }
}

TEST(EmulatedNvmlTest, AHostileOneHasANumberWithoutALink)
{
    const ChildResult child = run("HostileNvlinks", "EMU_HOSTILE=limits");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedNvmlTest, NvlinksAreCountedOneByOneWithTheirOtherEnds)
{
    const ChildResult child = run("Nvlinks");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedNvmlChild, DISABLED_Pairs)
{
    ASSERT_EQ(HETCOLL_TEST_NVML(nvmlInit_v2)(), NVML_SUCCESS);
    const auto ancestor = [](unsigned a, unsigned b) {
        nvmlGpuTopologyLevel_t level{};
        EXPECT_EQ(
            HETCOLL_TEST_NVML(nvmlDeviceGetTopologyCommonAncestor)(device(a), device(b), &level),
            NVML_SUCCESS);
        return level;
    };
    EXPECT_EQ(ancestor(0, 0), NVML_TOPOLOGY_INTERNAL);
    EXPECT_EQ(ancestor(0, 1), NVML_TOPOLOGY_SINGLE);
    EXPECT_EQ(ancestor(0, 2), NVML_TOPOLOGY_HOSTBRIDGE);
    EXPECT_EQ(ancestor(0, 3), NVML_TOPOLOGY_SYSTEM);
    const auto status = [](unsigned a, unsigned b, nvmlGpuP2PCapsIndex_t index) {
        nvmlGpuP2PStatus_t answer{};
        EXPECT_EQ(HETCOLL_TEST_NVML(nvmlDeviceGetP2PStatus)(device(a), device(b), index, &answer),
                  NVML_SUCCESS);
        return answer;
    };
    EXPECT_EQ(status(0, 1, NVML_P2P_CAPS_INDEX_NVLINK), NVML_P2P_STATUS_OK);
    EXPECT_EQ(status(0, 2, NVML_P2P_CAPS_INDEX_NVLINK), NVML_P2P_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(status(0, 2, NVML_P2P_CAPS_INDEX_READ), NVML_P2P_STATUS_OK);
    EXPECT_EQ(status(0, 3, NVML_P2P_CAPS_INDEX_READ), NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED);
}

TEST(EmulatedNvmlTest, PairsAreAsFarApartAsTheFileSays)
{
    const ChildResult child = run("Pairs");
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

} // namespace
} // namespace hetcoll::test
