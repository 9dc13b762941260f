// Kernels with many inputs and outputs and the copy kernel: their results, and how they signal that
// they are done.
#include "device/device.h"
#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <unistd.h>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;
using test::download;
using test::Faults;
using test::HeldDevices;
using test::upload;

// A flag in page-locked memory and the counter behind it.
class Flag {
public:
    Flag(const Device &device, CUstream stream)
        : pinned_(std::move(*device.make_pinned(sizeof(std::uint32_t)))),
          arrived_(std::move(*device.make_zeroed(sizeof(std::uint32_t), stream)))
    {
        *flag() = 0;
    }
    [[nodiscard]] Signal signal(std::uint32_t value) const
    {
        return {flag(), static_cast<std::uint32_t *>(test::pointer(arrived_.get())), value};
    }
    [[nodiscard]] std::uint32_t value() const { return read_flag(flag()); }
    void wait_for(std::uint32_t wanted) const
    {
        while (value() != wanted) {
            std::this_thread::yield();
        }
    }
    [[nodiscard]] std::uint32_t arrived() const
    {
        return download<std::uint32_t>(arrived_.get(), 1)[0];
    }

private:
    [[nodiscard]] std::uint32_t *flag() const
    {
        return static_cast<std::uint32_t *>(pinned_.get());
    }
    PinnedMemory pinned_;
    DeviceMemory arrived_;
};

class DeviceSignalTest : public test::OnOneStream {
protected:
    Status sum(const ReduceOutputs &outputs, const ReduceInputs &inputs, std::size_t count,
               const Signal &done)
    {
        return device_.kernels().reduce_many_async(ReduceOp::kSum, ElementKind::kInt32, outputs,
                                                   inputs, count, done, stream_.get());
    }
    // In place, as ranks that share a GPU do: every buffer becomes the sum of all.
    void sum_in_place(int ranks, std::size_t count, const Flag &flag)
    {
        std::vector<DeviceMemory> memory;
        ReduceInputs in{};
        ReduceOutputs out{};
        auto &lists = *static_cast<OperandLists *>(lists_.get());
        const void **const inputs = addresses(in, static_cast<std::size_t>(ranks), lists);
        void **const outputs = addresses(out, static_cast<std::size_t>(ranks), lists);
        for (int i = 0; i < ranks; ++i) {
            memory.push_back(filled(ramp(count, i)));
            inputs[i] = outputs[i] = test::pointer(memory.back().get());
        }
        const auto value = static_cast<std::uint32_t>(1000 * ranks + static_cast<int>(count));
        ASSERT_TRUE(sum(out, in, count, flag.signal(value)).ok());
        in = {}, out = {}; // the driver has its own copies
        flag.wait_for(value);
        for (const DeviceMemory &buffer : memory) {
            const std::vector<int> got = download<int>(buffer.get(), count);
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(got[i], ranks * static_cast<int>(i) + ranks * (ranks - 1) / 2) << i;
            }
        }
        EXPECT_EQ(flag.arrived(), 0u);
    }
    PinnedMemory lists_ = std::move(*device_.make_pinned(sizeof(OperandLists)));

    void copy_with_flag(std::size_t bytes, std::size_t to, std::size_t from, const Flag &flag,
                        std::uint32_t value)
    {
        std::vector<unsigned char> content(bytes + from, 0);
        std::iota(content.begin(), content.end(), static_cast<unsigned char>(value));
        auto source = device_.make_memory(content.size() + 1);
        auto target = device_.make_memory(bytes + to + 1);
        upload(source->get(), content);
        upload(target->get(), std::vector<unsigned char>(bytes + to + 1, 0xa5));
        ASSERT_TRUE(device_.kernels()
                        .copy_async(test::pointer(target->get() + to),
                                    test::pointer(source->get() + from), bytes, flag.signal(value),
                                    stream_.get())
                        .ok());
        flag.wait_for(value);
        std::vector<unsigned char> wanted(to, 0xa5);
        wanted.insert(wanted.end(), content.begin() + static_cast<long>(from), content.end());
        wanted.push_back(0xa5);
        EXPECT_EQ(download<unsigned char>(target->get(), bytes + to + 1), wanted);
    }
};

TEST_F(DeviceSignalTest, RanksThatShareTheGpuAreSummedInPlaceByOneKernel)
{
    const Flag flag(device_, stream_.get());
    const CallCount launches("cuLaunchKernel");
    std::uint64_t kernels = 0;
    for (const int ranks : {1, 2, 3, 5, 8, kMaxArgumentInputs}) {
        for (const std::size_t count : {1, 7, 513, 4099, 100003}) {
            sum_in_place(ranks, count, flag);
            EXPECT_EQ(launches.get(), ++kernels);
        }
    }
    for (const int ranks : {17, 65, kMaxReduceInputs}) {
        for (const std::size_t count : {1, 7, 4099}) {
            sum_in_place(ranks, count, flag);
            EXPECT_EQ(launches.get(), ++kernels);
        }
    }
}

TEST_F(DeviceSignalTest, TheFlagIsSetAfterTheKernelHasRunAndNotBefore)
{
    const Flag flag(device_, stream_.get());
    const DeviceMemory a = filled(ramp(100, 1)), b = filled(ramp(100, 2));
    HeldDevices held;
    ASSERT_TRUE(sum({{test::pointer(a.get())}, 1},
                    {{test::pointer(a.get()), test::pointer(b.get())}, 2}, 100, flag.signal(17))
                    .ok());
    EXPECT_EQ(flag.value(), 0u);
    EXPECT_FALSE(*device_.is_idle(stream_.get()));
    held.release();
    flag.wait_for(17);
    EXPECT_EQ(download<int>(a.get(), 2), (std::vector<int>{3, 5}));
}

TEST_F(DeviceSignalTest, AKernelThatIsToldToSkipWritesNothingAndSignals)
{
    const Flag flag(device_, stream_.get());
    const DeviceMemory a = filled(ramp(100, 1)), b = filled(ramp(100, 2));
    auto told = device_.make_pinned(sizeof(std::uint32_t));
    ASSERT_TRUE(told.ok());
    auto *const skip = static_cast<std::uint32_t *>(told->get());
    *skip = 0;
    for (const std::uint32_t value : {1u, 2u}) {
        HeldDevices held;
        Signal signal = flag.signal(value);
        signal.skip = skip;
        ASSERT_TRUE(sum({{test::pointer(a.get())}, 1},
                        {{test::pointer(a.get()), test::pointer(b.get())}, 2}, 100, signal)
                        .ok());
        *skip = value - 1; // after the launch; the first one runs
        held.release();
        flag.wait_for(value);
        EXPECT_EQ(download<int>(a.get(), 2), (std::vector<int>{3, 5}));
    }
}

TEST_F(DeviceSignalTest, WithoutAFlagNothingIsSignalled)
{
    const Flag flag(device_, stream_.get());
    const DeviceMemory a = filled(ramp(100, 1));
    ASSERT_TRUE(
        sum({{test::pointer(a.get())}, 1}, {{test::pointer(a.get())}, 1}, 100, Signal{}).ok());
    synchronize();
    EXPECT_TRUE(*device_.is_idle(stream_.get()));
    EXPECT_EQ(flag.value(), 0u);
}

TEST_F(DeviceSignalTest, TheFlagIsSetForNoElementsToo)
{
    const Flag flag(device_, stream_.get());
    ASSERT_TRUE(sum({{nullptr}, 1}, {{nullptr}, 1}, 0, flag.signal(3)).ok());
    flag.wait_for(3);
    ASSERT_TRUE(
        device_.kernels().copy_async(nullptr, nullptr, 0, flag.signal(4), stream_.get()).ok());
    flag.wait_for(4);
}

TEST_F(DeviceSignalTest, NoElementsAndNoFlagAreNoDriverCall)
{
    const CallCount calls;
    EXPECT_TRUE(sum({}, {}, 0, Signal{}).ok());
    EXPECT_TRUE(device_.kernels().copy_async(nullptr, nullptr, 0, Signal{}, stream_.get()).ok());
    EXPECT_EQ(calls.get(), 0u);
}

TEST_F(DeviceSignalTest, CopiesBetweenAnyAddresses)
{
    const Flag flag(device_, stream_.get());
    std::uint32_t value = 0;
    for (const std::size_t bytes : {1, 15, 16, 4099, 70001}) {
        for (const std::size_t shift : {0, 1, 2, 4, 8, 15}) {
            copy_with_flag(bytes, shift, 0, flag, ++value);
            copy_with_flag(bytes, 3, shift, flag, ++value);
        }
    }
}

TEST_F(DeviceSignalTest, CopiesFromPinnedMemory)
{
    const Flag flag(device_, stream_.get());
    const PinnedMemory from = std::move(*device_.make_pinned(64));
    std::memset(from.get(), 0x5a, 64);
    const DeviceMemory to = filled(ramp(16, 0));
    ASSERT_TRUE(
        device_.kernels()
            .copy_async(test::pointer(to.get()), from.get(), 64, flag.signal(1), stream_.get())
            .ok());
    flag.wait_for(1);
    EXPECT_EQ(download<int>(to.get(), 16), std::vector<int>(16, 0x5a5a5a5a));
}

TEST_F(DeviceSignalTest, APreparedKernelIsOneDriverCall)
{
    const Flag flag(device_, stream_.get());
    const DeviceMemory a = filled(ramp(8, 1)), b = filled(ramp(8, 1));
    ASSERT_TRUE(device_.kernels().load().ok());
    const CallCount calls;
    ASSERT_TRUE(
        sum({{test::pointer(a.get())}, 1}, {{test::pointer(a.get())}, 1}, 8, flag.signal(1)).ok());
    EXPECT_EQ(calls.get(), 1u);
    ASSERT_TRUE(device_.kernels()
                    .copy_async(test::pointer(b.get()), test::pointer(a.get()), 32, flag.signal(2),
                                stream_.get())
                    .ok());
    EXPECT_EQ(calls.get(), 2u);
    synchronize();
}

TEST_F(DeviceSignalTest, FailuresAreNamed)
{
    const DeviceMemory a = filled(ramp(8, 1)), b = filled(ramp(8, 1));
    const auto copy = [&] {
        return device_.kernels().copy_async(test::pointer(b.get()), test::pointer(a.get()), 32,
                                            Signal{}, stream_.get());
    };
    {
        Device device(*cuda().driver, cuda().context, -1);
        const Faults faults("cuModuleGetFunction:2:999");
        const Status failed = device.kernels().load();
        ASSERT_FALSE(failed.ok());
        EXPECT_EQ(
            failed.message().find(
                "cuModuleGetFunction failed: CUDA_ERROR_UNKNOWN (999), while hetcoll_reduce2_"),
            0u)
            << failed.message();
    }
    {
        const Faults faults("cuLaunchKernel:1:999");
        EXPECT_EQ(copy().message(), "cuLaunchKernel failed: CUDA_ERROR_UNKNOWN (999), while "
                                    "copying a part of a buffer");
    }
    {
        const Faults faults("cuMemsetD8Async:1:999");
        const auto memory = device_.make_zeroed(4, stream_.get());
        ASSERT_FALSE(memory.ok());
        EXPECT_EQ(memory.status().message(), "cuMemsetD8Async failed: CUDA_ERROR_UNKNOWN (999), "
                                             "while clearing device memory");
    }
    {
        const Faults faults("cuStreamQuery:1:999");
        EXPECT_FALSE(device_.is_idle(stream_.get()).ok());
    }
    EXPECT_TRUE(copy().ok());
    synchronize();
}

// In a process whose emulated GPU runs every block and thread, one after the other.
class DeviceThreadsTest : public DeviceSignalTest {
protected:
    [[noreturn]] void run()
    {
        const Flag flag(device_, stream_.get());
        sum_in_place(2, 513, flag); // one block
        sum_in_place(3, 20001, flag);
        copy_with_flag(40001, 1, 0, flag, 7);
        _exit(HasFailure() ? 1 : 0);
    }
};

TEST_F(DeviceThreadsTest, TheLastThreadSignals)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("EMU_COLLAPSE", "0", 1);
    EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
    unsetenv("EMU_COLLAPSE");
}

} // namespace
} // namespace hetcoll
