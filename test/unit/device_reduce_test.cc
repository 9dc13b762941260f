#include "device/device.h"
#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;
using test::download;
using test::Faults;

class DeviceReduceTest : public test::OnOneStream {};

TEST_F(DeviceReduceTest, SumsTwoBuffersIntoAThird)
{
    for (const std::size_t count : {1, 3, 512, 4097, 300001}) {
        const DeviceMemory a = filled(ramp(count, 5)), b = filled(ramp(count, -7));
        const DeviceMemory dst = filled(std::vector<int>(count, -1));
        ASSERT_TRUE(device_.kernels()
                        .reduce_async(ReduceOp::kSum, ElementKind::kInt32, test::pointer(dst.get()),
                                      test::pointer(a.get()), test::pointer(b.get()), count,
                                      stream_.get())
                        .ok());
        synchronize();
        const std::vector<int> sum = download<int>(dst.get(), count);
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(sum[i], 2 * static_cast<int>(i) - 2) << i << " of " << count;
        }
    }
}

TEST_F(DeviceReduceTest, TheResultMayReplaceEitherInput)
{
    constexpr std::size_t kCount = 1001;
    for (const bool replaces_first : {true, false}) {
        const DeviceMemory a = filled(ramp(kCount, 10)), b = filled(std::vector<int>(kCount, 3));
        const CUdeviceptr dst = replaces_first ? a.get() : b.get();
        ASSERT_TRUE(device_.kernels()
                        .reduce_async(ReduceOp::kProd, ElementKind::kInt32, test::pointer(dst),
                                      test::pointer(a.get()), test::pointer(b.get()), kCount,
                                      stream_.get())
                        .ok());
        synchronize();
        const std::vector<int> product = download<int>(dst, kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(product[i], 3 * (static_cast<int>(i) + 10));
        }
    }
}

TEST_F(DeviceReduceTest, AlignmentOfTheElementIsEnough)
{
    constexpr std::size_t kCount = 777;
    const DeviceMemory a = filled(ramp(kCount + 1, 0)), b = filled(ramp(kCount + 1, 100));
    ASSERT_TRUE(device_.kernels()
                    .reduce_async(ReduceOp::kMax, ElementKind::kInt32,
                                  test::pointer(a.get() + sizeof(int)),
                                  test::pointer(a.get() + sizeof(int)), test::pointer(b.get()),
                                  kCount, stream_.get())
                    .ok());
    synchronize();
    const std::vector<int> most = download<int>(a.get(), kCount + 1);
    EXPECT_EQ(most[0], 0);
    for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(most[i + 1], static_cast<int>(i) + 100);
    }
}

TEST_F(DeviceReduceTest, ManyInputsAreReducedIntoOne)
{
    constexpr std::size_t kCount = 4099;
    for (const int inputs : {1, 2, 5, kMaxArgumentInputs}) {
        std::vector<DeviceMemory> memory;
        ReduceInputs in{};
        for (int i = 0; i < inputs; ++i) {
            memory.push_back(filled(ramp(kCount, i)));
            in.input[in.count++] = test::pointer(memory.back().get());
        }
        ASSERT_TRUE(device_.kernels()
                        .reduce_many_async(ReduceOp::kSum, ElementKind::kInt32,
                                           {{test::pointer(memory[0].get())}, 1}, in, kCount,
                                           Signal{}, stream_.get())
                        .ok());
        in = {}; // the driver has its own copy
        synchronize();
        const std::vector<int> sum = download<int>(memory[0].get(), kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            ASSERT_EQ(sum[i], inputs * static_cast<int>(i) + inputs * (inputs - 1) / 2);
        }
    }
}

TEST_F(DeviceReduceTest, TheSecondReductionOfAKindIsOneDriverCall)
{
    const DeviceMemory a = filled(ramp(8, 1));
    const auto reduce = [&] {
        return device_.kernels().reduce_async(ReduceOp::kSum, ElementKind::kInt32,
                                              test::pointer(a.get()), test::pointer(a.get()),
                                              test::pointer(a.get()), 8, stream_.get());
    };
    ASSERT_TRUE(reduce().ok());
    const CallCount calls;
    ASSERT_TRUE(reduce().ok());
    EXPECT_EQ(calls.get(), 1u);
}

// Loading a kernel may wait for another library's kernel that waits for a peer of this call.
TEST_F(DeviceReduceTest, NoKernelIsLoadedAfterTheFirstCall)
{
    const DeviceMemory a = filled(ramp(8, 1));
    ASSERT_TRUE(device_.kernels().load().ok());
    const CallCount calls;
    EXPECT_TRUE(device_.kernels().prepare(ReduceOp::kMax, ElementKind::kFloat64).ok());
    EXPECT_TRUE(device_.kernels().load().ok());
    EXPECT_EQ(calls.get(), 0u);
    EXPECT_TRUE(device_.kernels()
                    .reduce_async(ReduceOp::kMax, ElementKind::kFloat64, test::pointer(a.get()),
                                  test::pointer(a.get()), test::pointer(a.get()), 4, stream_.get())
                    .ok());
    EXPECT_EQ(calls.get(), 1u);
    synchronize();
}

TEST_F(DeviceReduceTest, KernelsThatThisDriverNeverLoadsAreTriedOnce)
{
    for (const char *const code : {"209", "222"}) {
        Device device(*cuda().driver, cuda().context, -1);
        const CallCount loads("cuModuleLoadData");
        {
            const Faults faults((std::string("cuModuleLoadData:*:") + code).c_str());
            EXPECT_FALSE(device.kernels().load().ok());
        }
        const Status status = device.kernels().prepare(ReduceOp::kSum, ElementKind::kInt32);
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.code(), Errc::kUnsupported);
        EXPECT_NE(status.message().find("--with-cuda-arch"), std::string::npos) << status.message();
        EXPECT_EQ(loads.get(), 1u);
    }
}

TEST_F(DeviceReduceTest, KernelsForWhichThereWasNoMemoryAreTriedAgain)
{
    {
        const Faults faults("cuModuleLoadData:1:2");
        EXPECT_FALSE(device_.kernels().load().ok());
    }
    EXPECT_TRUE(device_.kernels().load().ok());
}

TEST_F(DeviceReduceTest, NothingToReduceIsNoDriverCall)
{
    const CallCount calls;
    EXPECT_TRUE(device_.kernels()
                    .reduce_async(ReduceOp::kSum, ElementKind::kInt32, nullptr, nullptr, nullptr, 0,
                                  stream_.get())
                    .ok());
    EXPECT_EQ(calls.get(), 0u);
}

TEST_F(DeviceReduceTest, AnUndefinedOperationIsRefused)
{
    const DeviceMemory a = filled(ramp(8, 1));
    const Status status = device_.kernels().reduce_async(
        ReduceOp::kBand, ElementKind::kFloat32, test::pointer(a.get()), test::pointer(a.get()),
        test::pointer(a.get()), 8, stream_.get());
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Errc::kInvalid);
    EXPECT_EQ(status.message(), "MPI does not define band of float32");
}

TEST_F(DeviceReduceTest, EveryFailingCallIsNamedAndTheNextReductionWorks)
{
    for (const char *const call : {"cuCtxGetDevice", "cuDeviceGetAttribute", "cuModuleLoadData",
                                   "cuModuleGetFunction", "cuLaunchKernel"}) {
        Device device(*cuda().driver, cuda().context, -1);
        const DeviceMemory a = filled(ramp(8, 1));
        const auto reduce = [&] {
            return device.kernels().reduce_async(ReduceOp::kSum, ElementKind::kInt32,
                                                 test::pointer(a.get()), test::pointer(a.get()),
                                                 test::pointer(a.get()), 8, stream_.get());
        };
        const Faults faults((std::string(call) + ":1:999").c_str());
        const Status status = reduce();
        ASSERT_FALSE(status.ok()) << call;
        EXPECT_EQ(status.code(), Errc::kDriver);
        EXPECT_NE(status.message().find("failed: CUDA_ERROR_UNKNOWN (999)"), std::string::npos)
            << status.message();
        EXPECT_TRUE(reduce().ok()) << call;
        synchronize();
    }
}

unsigned launched_blocks = 0; // of the last kernel of a driver that counts them

TEST_F(DeviceReduceTest, ALimitOfBlocksBoundsEveryKernelAndLeavesItsResult)
{
    Driver driver = *cuda().driver;
    driver.cuLaunchKernel = [](CUfunction function, unsigned blocks, auto... rest) {
        launched_blocks = blocks;
        return cuda().driver->cuLaunchKernel(function, blocks, rest...);
    };
    Device device(driver, cuda().context, -1);
    constexpr std::size_t kCount = 5 * 512 * 4; // ints for five blocks, 16 bytes a thread
    const DeviceMemory a = filled(ramp(kCount, 0)), sum = filled(std::vector<int>(kCount, -1));
    const auto blocks_with = [&](int limit, std::size_t count) {
        device.kernels().limit_blocks(limit);
        EXPECT_TRUE(device.kernels()
                        .reduce_many_async(ReduceOp::kSum, ElementKind::kInt32,
                                           {{test::pointer(sum.get())}, 1},
                                           {{test::pointer(a.get()), test::pointer(a.get())}, 2},
                                           count, Signal{}, stream_.get())
                        .ok());
        synchronize();
        EXPECT_EQ(download<int>(sum.get(), count).back(), 2 * (static_cast<int>(count) - 1));
        return launched_blocks;
    };
    EXPECT_EQ(blocks_with(0, kCount), 5u);
    EXPECT_EQ(blocks_with(2, kCount), 2u);
    EXPECT_EQ(blocks_with(1, kCount), 1u);
    EXPECT_EQ(blocks_with(2, 4), 1u); // no more than have work
    EXPECT_EQ(blocks_with(1 << 20, kCount), 5u);
    device.kernels().limit_blocks(3);
    ASSERT_TRUE(device.kernels()
                    .copy_async(test::pointer(sum.get()), test::pointer(a.get()),
                                kCount * sizeof(int), Signal{}, stream_.get())
                    .ok());
    synchronize();
    EXPECT_EQ(launched_blocks, 3u);
    device.kernels().limit_blocks(0);
    EXPECT_EQ(blocks_with(0, kCount), 5u);
}

TEST_F(DeviceReduceTest, ThreadsShareOneDevice)
{
    constexpr int kThreads = 8;
    constexpr std::size_t kCount = 100;
    Device device(*cuda().driver, cuda().context, -1);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            const ContextScope scope(*cuda().driver, cuda().context);
            auto own = device.make_stream();
            const DeviceMemory a = filled(ramp(kCount, i));
            for (int round = 0; round < 20; ++round) {
                ASSERT_TRUE(device.kernels()
                                .reduce_async(round % 2 == 0 ? ReduceOp::kSum : ReduceOp::kMax,
                                              ElementKind::kInt32, test::pointer(a.get()),
                                              test::pointer(a.get()), test::pointer(a.get()),
                                              kCount, own->get())
                                .ok());
            }
            HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(own->get()));
            EXPECT_EQ(download<int>(a.get(), kCount)[1], (i + 1) << 10);
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

} // namespace
} // namespace hetcoll
