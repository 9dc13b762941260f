#include "device/driver.h"
#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;

TEST(DriverLibraryTest, OpeningTheDriverMakesNoCudaCall)
{
    const CallCount calls;
    const DriverLibrary library;
    ASSERT_NE(library.get(), nullptr);
    EXPECT_EQ(library.get(), library.get());
    EXPECT_TRUE(library.is_emulated());
    EXPECT_TRUE(library.is_loaded_in_process());
    EXPECT_TRUE(library.load_error().ok());
    EXPECT_EQ(calls.get(), 0u);
}

TEST(DriverLibraryTest, WhatCudaVisibleDevicesHidesMayBeShownLater)
{
    for (const char *const hidden : {"", "-1", "0"}) {
        setenv("CUDA_VISIBLE_DEVICES", hidden, 1);
        EXPECT_TRUE(DriverLibrary::may_have_gpu()) << hidden;
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(DriverStatusTest, NamesTheCallTheCodeAndWhatWasDone)
{
    EXPECT_TRUE(driver_status(*cuda().driver, CUDA_SUCCESS, "cuMemAlloc", "allocating").ok());
    const Status status =
        driver_status(*cuda().driver, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc", "allocating");
    EXPECT_EQ(status.code(), Errc::kNoMemory);
    EXPECT_EQ(status.message(),
              "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2), while allocating");
    const Status unknown =
        driver_status(*cuda().driver, static_cast<CUresult>(12345), "cuMemFree", "freeing");
    EXPECT_EQ(unknown.code(), Errc::kDriver);
    EXPECT_EQ(unknown.message(), "cuMemFree failed: unknown error (12345), while freeing");
}

TEST(DriverStatusTest, SaysWhatToDoAboutACapture)
{
    const Status status = driver_status(*cuda().driver, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                                        "cuEventRecord", "recording");
    EXPECT_NE(status.message().find("outside of the capture"), std::string::npos)
        << status.message();
}

TEST(DriverStatusTest, TeardownCodesAreThose)
{
    for (const CUresult code :
         {CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT}) {
        EXPECT_TRUE(is_torn_down(code));
    }
    EXPECT_FALSE(is_torn_down(CUDA_SUCCESS));
    EXPECT_FALSE(is_torn_down(CUDA_ERROR_ILLEGAL_ADDRESS));
}

// The following run in a process of their own, which GoogleTest starts again ("threadsafe").

[[noreturn]] void check_not_loaded()
{
    const DriverLibrary library;
    bool right = !library.is_loaded_in_process() && !library.is_loaded_in_process();
    right = dlopen("libcuda.so.1", RTLD_NOW) != nullptr && right; // as the application does
    _exit(right && library.is_loaded_in_process() && library.get() != nullptr ? 0 : 1);
}

TEST(DriverProcessTest, NoticesWhenTheApplicationLoadsTheDriver)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(check_not_loaded(), ::testing::ExitedWithCode(0), "");
}

// A folder with a driver of our making, first on the library path of the processes started next.
class OtherDriver {
public:
    explicit OtherDriver(const std::string &source)
    {
        char name[] = "/tmp/hetcoll_driver_XXXXXX";
        folder_ = mkdtemp(name);
        std::ofstream(folder_ + "/driver.c") << source;
        const char *const compiler = std::getenv("CXX");
        const std::string build = std::string(compiler != nullptr ? compiler : "c++") +
                                  " -x c -shared -fPIC -o " + folder_ + "/libcuda.so.1 " + folder_ +
                                  "/driver.c";
        is_built_ = std::system(build.c_str()) == 0;
        const char *const path = std::getenv("LD_LIBRARY_PATH");
        path_ = path != nullptr ? path : "";
        setenv("LD_LIBRARY_PATH", (folder_ + ":" + path_).c_str(), 1);
    }
    ~OtherDriver()
    {
        setenv("LD_LIBRARY_PATH", path_.c_str(), 1);
        unlink((folder_ + "/driver.c").c_str());
        unlink((folder_ + "/libcuda.so.1").c_str());
        rmdir(folder_.c_str());
    }
    OtherDriver(const OtherDriver &) = delete;
    OtherDriver &operator=(const OtherDriver &) = delete;
    [[nodiscard]] bool is_built() const { return is_built_; }

private:
    std::string folder_, path_;
    bool is_built_ = false;
};

// Answers 999.
std::string entry_point(const char *name)
{
    return std::string("int ") + name + "() { return 999; }\n";
}

// Every entry point that hetcoll needs, less one.
std::string driver_without(const std::string &missing)
{
    std::string source;
#define HETCOLL_TEST_DEFINE(name)                            \
    if (missing != #name) {                                  \
        source += entry_point(HETCOLL_TEST_CALL_NAME(name)); \
    }
    HETCOLL_NEEDED_DRIVER_CALLS(HETCOLL_TEST_DEFINE)
#undef HETCOLL_TEST_DEFINE
    return source;
}

[[noreturn]] void check_driver_lacks(const char *name)
{
    const DriverLibrary library;
    const bool right = library.get() == nullptr && !library.is_emulated() &&
                       library.load_error().message().find(name) != std::string::npos;
    _exit(right ? 0 : 1);
}

TEST(DriverProcessTest, NamesTheEntryPointThatAnOldDriverLacks)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const OtherDriver driver(driver_without("cuLaunchKernel"));
    ASSERT_TRUE(driver.is_built());
    EXPECT_EXIT(check_driver_lacks("cuLaunchKernel"), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void check_without_optional_calls()
{
    const DriverLibrary library;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    CUuuid uuid;
    const bool right =
        library.get() != nullptr &&
        library.get()->cuThreadExchangeStreamCaptureMode(&mode) == CUDA_ERROR_NOT_SUPPORTED &&
        library.get()->cuDeviceGetUuid_v2(&uuid, 0) == CUDA_ERROR_NOT_SUPPORTED &&
        library.get()->cuMemSetAccess(0, 0, nullptr, 0) == CUDA_ERROR_NOT_SUPPORTED &&
        library.get()->cuCtxSynchronize() == CUDA_ERROR_UNKNOWN;
    _exit(right ? 0 : 1);
}

TEST(DriverProcessTest, DoesWithoutAllOptionalCalls)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const OtherDriver driver(driver_without("nothing"));
    ASSERT_TRUE(driver.is_built());
    EXPECT_EXIT(check_without_optional_calls(), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void check_broken_library()
{
    const DriverLibrary library;
    const bool refused = library.get() == nullptr && !library.load_error().ok() &&
                         !DriverLibrary::may_have_gpu() && library.get() == nullptr;
    _exit(refused ? 0 : 1);
}

TEST(DriverProcessTest, WithoutALibraryTheReasonIsTheLoaders)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const OtherDriver driver("int nothing;\n"); // lacks all, and is not the emulated one
    ASSERT_TRUE(driver.is_built());
    EXPECT_EXIT(check_broken_library(), ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace hetcoll
