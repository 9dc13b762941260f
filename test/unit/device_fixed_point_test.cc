// The conversions to and from fixed point on the device, against those of the host.
#include "device/device.h"
#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace hetcoll {
namespace {

using test::download;

class DeviceFixedPointTest : public test::OnOneStream {
protected:
    // Pinned memory for the flag, as transport/device_bounce.h has it.
    void SetUp() override
    {
        test::OnOneStream::SetUp();
        auto pinned = device_.make_pinned(sizeof(std::uint32_t));
        ASSERT_TRUE(pinned.ok());
        flag_ = std::move(*pinned);
        *flag() = 0;
    }
    std::uint32_t *flag() { return static_cast<std::uint32_t *>(flag_.get()); }

    PinnedMemory flag_;
};

std::vector<float> fractions(std::size_t count)
{
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = std::sin(static_cast<float>(i)) * 1000;
    }
    return values;
}

TEST_F(DeviceFixedPointTest, ConvertsThereAndBackToTheBitsOfTheHost)
{
    for (const std::size_t count : {1, 31, 513, 100003}) {
        const std::vector<float> values = fractions(count);
        const FixedPoint how = fixed_point(ElementKind::kFloat32, 12, 4);
        std::vector<std::int32_t> expected(count);
        ASSERT_TRUE(to_fixed(ElementKind::kFloat32, expected.data(), values.data(), count, how));
        const DeviceMemory from = filled(values), to = filled(values);
        ASSERT_TRUE(device_.kernels()
                        .to_fixed_async(ElementKind::kFloat32, test::pointer(to.get()),
                                        test::pointer(from.get()), count, how, flag(), {},
                                        stream_.get())
                        .ok());
        synchronize();
        EXPECT_EQ(download<std::int32_t>(to.get(), count), expected);
        EXPECT_EQ(*flag(), 0u);
        ASSERT_TRUE(device_.kernels()
                        .from_fixed_async(ElementKind::kFloat32, test::pointer(to.get()),
                                          test::pointer(to.get()), count, how, {}, stream_.get())
                        .ok());
        synchronize();
        std::vector<float> back(count);
        from_fixed(ElementKind::kFloat32, back.data(), expected.data(), count, how);
        EXPECT_EQ(download<float>(to.get(), count), back);
    }
}

TEST_F(DeviceFixedPointTest, TellsOfOneElementThatIsOutOfRange)
{
    std::vector<double> values(5000, 1.5);
    values[4321] = std::nan("");
    const DeviceMemory memory = filled(values);
    const FixedPoint how = fixed_point(ElementKind::kFloat64, 12, 4);
    ASSERT_TRUE(device_.kernels()
                    .to_fixed_async(ElementKind::kFloat64, test::pointer(memory.get()),
                                    test::pointer(memory.get()), values.size(), how, flag(), {},
                                    stream_.get())
                    .ok());
    synchronize();
    EXPECT_EQ(*flag(), 1u);
}

} // namespace
} // namespace hetcoll
