// The processor's mapping of device memory, by GDRCopy and as a dma-buf.
#include "device/host_view.h"
#include "test/unit/device_cuda.h"
#include "test/unit/device_gdr.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

using test::cuda;
using test::download;
using test::GdrFaults;
using test::upload;

enum class By { kGdr, kDmaBuf };

class HostViewTest : public ::testing::TestWithParam<By> {
protected:
    static constexpr std::size_t kCount = 100;

    void SetUp() override
    {
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        gdr_ = std::move(*GdrLibrary::open());
    }
    [[nodiscard]] HostView::Methods methods() const
    {
        return {.gdr = GetParam() == By::kGdr ? gdr_.get() : nullptr,
                .dma_buf = GetParam() == By::kDmaBuf};
    }
    [[nodiscard]] Result<std::unique_ptr<HostView>> map(CUdeviceptr first, std::size_t bytes) const
    {
        return HostView::map(*cuda().driver, methods(),
                             {.ordinal = 0, .buffer_id = 1, .first = first, .bytes = bytes});
    }

    std::unique_ptr<GdrLibrary> gdr_;
};

TEST_P(HostViewTest, ShowsWhatTheGpuHasWrittenAndTheGpuSeesWhatItWrites)
{
    for (const std::size_t bytes : {kCount * sizeof(int), std::size_t{3} << 20}) {
        const CUdeviceptr memory = cuda().allocate(bytes);
        const std::vector<int> numbers(kCount, 7), others(kCount, 8);
        upload(memory, numbers);
        const auto view = map(memory, kCount * sizeof(int));
        ASSERT_TRUE(view.ok()) << view.status().message();
        std::vector<int> seen(kCount);
        EXPECT_TRUE((*view)->read(seen.data(), memory, kCount * sizeof(int)));
        EXPECT_EQ(seen, numbers);
        upload(memory, others);
        EXPECT_TRUE((*view)->read(seen.data(), memory, kCount * sizeof(int)));
        EXPECT_EQ(seen, others);
        EXPECT_TRUE((*view)->write(memory + sizeof(int), numbers.data(), sizeof(int)));
        EXPECT_EQ(download<int>(memory, 3), (std::vector<int>{8, 7, 8}));
        HETCOLL_REQUIRE(cuda().driver->cuMemFree(memory));
    }
}

TEST_P(HostViewTest, ShowsAPartOfOneAllocation)
{
    const CUdeviceptr memory = cuda().allocate(1 << 20);
    const auto view = map(memory + 100, 1000);
    ASSERT_TRUE(view.ok());
    EXPECT_TRUE((*view)->shows(1, memory + 100, 1000));
    EXPECT_TRUE((*view)->shows(1, memory + 200, 8));
    EXPECT_FALSE((*view)->shows(2, memory + 100, 1000));
    EXPECT_FALSE((*view)->shows(1, memory + 100, std::size_t{4} << 20));
    EXPECT_FALSE((*view)->shows(1, memory - (std::size_t{4} << 20), 8));
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(memory));
}

// The bytes that a cache by addresses would read.
TEST_P(HostViewTest, OutlivesTheMemoryAndDoesNotShowWhatComesThereNext)
{
    constexpr std::size_t kBytes = std::size_t{2} << 20; // a block of its own
    const CUdeviceptr memory = cuda().allocate(kBytes);
    const auto view = map(memory, sizeof(int));
    ASSERT_TRUE(view.ok());
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(memory));
    const CUdeviceptr next = cuda().allocate(kBytes);
    ASSERT_EQ(next, memory);
    upload(next, std::vector<unsigned>{5});
    unsigned seen = 0;
    EXPECT_TRUE((*view)->read(&seen, next, sizeof seen));
    EXPECT_EQ(seen, 0xdbdbdbdbu);
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(next));
}

TEST_P(HostViewTest, MemoryThatIsNobodysIsRefused)
{
    const CUdeviceptr memory = cuda().allocate(std::size_t{2} << 20);
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(memory));
    EXPECT_FALSE(map(memory, 8).ok());
}

INSTANTIATE_TEST_SUITE_P(Ways, HostViewTest, ::testing::Values(By::kGdr, By::kDmaBuf),
                         [](const auto &way) {
                             return std::string(way.param == By::kGdr ? "Gdr" : "DmaBuf");
                         });

TEST(HostViewTest, ThereMayBeNoWay)
{
    const CUdeviceptr memory = cuda().allocate(8);
    const auto view = HostView::map(*cuda().driver, {},
                                    {.ordinal = 0, .buffer_id = 1, .first = memory, .bytes = 8});
    ASSERT_FALSE(view.ok());
    EXPECT_EQ(view.status().message(), "there is no way to map device memory");
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(memory));
}

TEST(HostViewTest, ADriverOfThisReleaseMapsDmaBufs)
{
    EXPECT_TRUE(HostView::maps_dma_bufs(*cuda().driver, 0)); // EMU_DRIVER_VERSION=13030
    const test::Faults faults("cuDriverGetVersion:*:999");
    EXPECT_FALSE(HostView::maps_dma_bufs(*cuda().driver, 0));
}

TEST(GdrLibraryTest, SaysWhyItCannotBeUsed)
{
    const std::pair<const char *, const char *> problems[] = {
        {"gdr_open:1:2", "GDRCopy cannot open /dev/gdrdrv: load its kernel module gdrdrv"},
        {"gdr_runtime_get_version:1:1", "libgdrapi.so.2 is of GDRCopy 2.4, install 2.5 or newer"},
        {"gdr_driver_get_version:1:1",
         "GDRCopy's kernel module gdrdrv is of 2.4, install 2.5 or newer"}};
    for (const auto &[fault, message] : problems) {
        const GdrFaults faults(fault);
        const auto library = GdrLibrary::open();
        ASSERT_FALSE(library.ok()) << fault;
        EXPECT_EQ(library.status().message(), message);
    }
}

TEST(GdrLibraryTest, WhatCannotBeMappedIsNotPinned)
{
    const auto library = GdrLibrary::open();
    ASSERT_TRUE(library.ok());
    const CUdeviceptr memory = cuda().allocate(std::size_t{2} << 20);
    const int before = test::gdr_pins();
    for (const char *const fault : {"gdr_map:1:12", "gdr_pin_buffer:1:12"}) {
        const GdrFaults faults(fault);
        EXPECT_FALSE((*library)->map(memory, GdrLibrary::kPageBytes).ok());
        EXPECT_EQ(test::gdr_pins(), before);
    }
    const auto mapping = (*library)->map(memory, GdrLibrary::kPageBytes);
    ASSERT_TRUE(mapping.ok());
    EXPECT_EQ(test::gdr_pins(), before + 1);
    (*library)->unmap(*mapping);
    EXPECT_EQ(test::gdr_pins(), before);
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(memory));
}

// ---- The question whether earlier work is done ----

TEST(LegacyStreamTest, IsAskedInFourCallsWhereItsContextIsCurrent)
{
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
    const test::CallCount calls;
    const auto idle = is_legacy_stream_idle(*cuda().driver, cuda().context);
    EXPECT_EQ(calls.get(), 4u);
    ASSERT_TRUE(idle.ok());
    EXPECT_TRUE(*idle);
}

TEST(LegacyStreamTest, IsThatOfTheContextThatIsNamed)
{
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
    const CUcontext other = cuda().make_context();
    const CUdeviceptr memory = cuda().allocate(8);
    {
        test::HeldDevices held;
        HETCOLL_REQUIRE(cuda().driver->cuMemsetD8Async(memory, 1, 8, CU_STREAM_LEGACY));
        EXPECT_TRUE(*is_legacy_stream_idle(*cuda().driver, other));
        EXPECT_FALSE(*is_legacy_stream_idle(*cuda().driver, cuda().context));
        const test::CallCount questions("cuStreamQuery");
        std::thread([&] {
            const test::CallCount visits("cuCtxPushCurrent");
            EXPECT_FALSE(*is_legacy_stream_idle(*cuda().driver, cuda().context));
            CUcontext current = cuda().context;
            HETCOLL_REQUIRE(cuda().driver->cuCtxGetCurrent(&current));
            EXPECT_EQ(current, nullptr);
            EXPECT_EQ(visits.get(), 1u);
        }).join();
        EXPECT_EQ(questions.get(), Linger{}.polls);
    }
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(memory));
    HETCOLL_REQUIRE(cuda().cuCtxDestroy(other));
}

TEST(LegacyStreamTest, AskingLeavesACaptureOfAnotherThreadAlone)
{
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
    CUstream stream = nullptr;
    HETCOLL_REQUIRE(cuda().driver->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    HETCOLL_REQUIRE(cuda().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    std::thread([] {
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        EXPECT_TRUE(is_legacy_stream_idle(*cuda().driver, cuda().context).ok());
    }).join();
    EXPECT_TRUE(is_legacy_stream_idle(*cuda().driver, cuda().context).ok());
    CUgraph graph = nullptr;
    EXPECT_EQ(cuda().cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    HETCOLL_REQUIRE(cuda().cuGraphDestroy(graph));
    HETCOLL_REQUIRE(cuda().driver->cuStreamDestroy(stream));
}

} // namespace
} // namespace hetcoll
