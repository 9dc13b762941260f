// EMU_DRIVER: a driver of an older CUDA release lacks what came later.
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <cstdlib>
#include <string>

namespace hetcoll::test {
namespace {

// The driver as a program finds it that was written for any release.
struct AnyDriver {
    template <class Call> [[nodiscard]] Call *find(const char *symbol) const
    {
        return reinterpret_cast<Call *>(dlsym(library, symbol));
    }
    [[nodiscard]] bool has(const char *symbol) const { return dlsym(library, symbol) != nullptr; }
    [[nodiscard]] CUresult ask_attribute(int attribute) const
    {
        int value = 0;
        return find<CUresult(int *, CUdevice_attribute, CUdevice)>("cuDeviceGetAttribute")(
            &value, static_cast<CUdevice_attribute>(attribute), 0);
    }
    // By cuGetProcAddress of CUDA 11.3, which all of them have.
    [[nodiscard]] CUresult ask_address(const char *call, int version) const
    {
        void *address = nullptr;
        return find<CUresult(const char *, void **, int, cuuint64_t)>("cuGetProcAddress")(
            call, &address, version, 0);
    }

    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
};

void expect_version(const AnyDriver &driver, int expected)
{
    int version = 0;
    EXPECT_EQ(driver.find<CUresult(int *)>("cuDriverGetVersion")(&version), CUDA_SUCCESS);
    EXPECT_EQ(version, expected);
    EXPECT_EQ(driver.find<CUresult(unsigned)>("cuInit")(0), CUDA_SUCCESS);
}

constexpr int kDmaBuf = 124, kMulticast = 132; // device attributes

TEST(DriverVersionChild, DISABLED_Is11_8)
{
    const AnyDriver driver;
    expect_version(driver, 11080);
    for (const char *const later : {"cuCtxGetId", "cuStreamGetId", "cuGetProcAddress_v2",
                                    "cuLibraryLoadData", "cuCtxCreate_v4"}) {
        EXPECT_FALSE(driver.has(later)) << later;
    }
    for (const char *const there : {"cuMemAlloc_v2", "cuDeviceGetUuid_v2", "cuMemMap"}) {
        EXPECT_TRUE(driver.has(there)) << there;
    }
    EXPECT_EQ(driver.ask_address("cuCtxGetId", 13000), CUDA_ERROR_NOT_FOUND);
    EXPECT_EQ(driver.ask_address("cuMemAlloc", 13000), CUDA_SUCCESS);
    EXPECT_EQ(driver.ask_attribute(kDmaBuf), CUDA_SUCCESS);
    EXPECT_EQ(driver.ask_attribute(kMulticast), CUDA_ERROR_INVALID_VALUE);
}

TEST(DriverVersionChild, DISABLED_Is12_2)
{
    const AnyDriver driver;
    expect_version(driver, 12020);
    EXPECT_TRUE(driver.has("cuCtxGetId"));
    EXPECT_FALSE(driver.has("cuEventElapsedTime_v2")); // 12.8
    EXPECT_EQ(driver.ask_attribute(kMulticast), CUDA_SUCCESS);
}

TEST(DriverVersionChild, DISABLED_Is12_9)
{
    const AnyDriver driver;
    expect_version(driver, 12090);
    EXPECT_TRUE(driver.has("cuEventElapsedTime_v2"));
    EXPECT_FALSE(driver.has("cuCtxGetDevice_v2")); // 13.0
}

class DriverVersionTest : public ::testing::TestWithParam<std::pair<const char *, const char *>> {};

TEST_P(DriverVersionTest, LacksWhatCameLater)
{
    const auto &[release, child] = GetParam();
    const ChildResult result = run_in_child(std::string("DriverVersionChild.DISABLED_Is") + child,
                                            {std::string("EMU_DRIVER=") + release});
    EXPECT_EQ(result.exit_status, 0) << result.errors;
}
INSTANTIATE_TEST_SUITE_P(Releases, DriverVersionTest,
                         ::testing::Values(std::pair("11.8", "11_8"), std::pair("12.2", "12_2"),
                                           std::pair("12.9", "12_9")));

} // namespace
} // namespace hetcoll::test
