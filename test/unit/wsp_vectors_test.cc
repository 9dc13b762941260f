#include "wsp/vectors.h"

#include "hetcoll_config.h"
#if HETCOLL_WITH_CUDA
#include "test/unit/device_cuda.h"
#endif

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace hetcoll {
namespace {

constexpr std::size_t kCount = 10007; // more than a part, no multiple of anything

// The vectors of one kind of memory, and the way in and out of them.
class Place {
public:
    explicit Place(bool on_device)
    {
#if HETCOLL_WITH_CUDA
        if (on_device) {
            const CUdeviceptr probe = test::cuda().allocate(4);
            vectors_ =
                std::move(*make_vectors(test::pointer(probe), kCount, ElementKind::kFloat32));
            test::cuda().driver->cuMemFree(probe);
            return;
        }
#endif
        EXPECT_FALSE(on_device);
        float probe = 0;
        vectors_ = std::move(*make_vectors(&probe, kCount, ElementKind::kFloat32));
    }

    [[nodiscard]] WaveVectors &vectors() const { return *vectors_; }
    [[nodiscard]] void *filled(float first) const
    {
        void *const made = *vectors_->make();
        std::vector<float> values(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
            values[i] = first + static_cast<float>(i % 97) / 3;
        }
        put(made, values);
        return made;
    }
    void put(void *to, const std::vector<float> &values) const
    {
#if HETCOLL_WITH_CUDA
        if (vectors_->on_device()) {
            test::upload(reinterpret_cast<CUdeviceptr>(to), values);
            return;
        }
#endif
        std::memcpy(to, values.data(), kCount * sizeof(float));
    }
    [[nodiscard]] std::vector<float> get(const void *from) const
    {
#if HETCOLL_WITH_CUDA
        if (vectors_->on_device()) {
            return test::download<float>(reinterpret_cast<CUdeviceptr>(from), kCount);
        }
#endif
        std::vector<float> values(kCount);
        std::memcpy(values.data(), from, kCount * sizeof(float));
        return values;
    }

private:
    std::unique_ptr<WaveVectors> vectors_;
};

class WspVectorsTest : public ::testing::TestWithParam<bool> {
protected:
    Place place_{GetParam()};
};

TEST_P(WspVectorsTest, AreInTheMemoryOfTheProgramsVector)
{
    EXPECT_EQ(place_.vectors().on_device(), GetParam());
}

TEST_P(WspVectorsTest, AreAddedFromTheLeftHoweverManyThereAre)
{
    for (const std::size_t terms : {1, 2, 3, 16, 17, 40}) { // a kernel takes sixteen
        std::vector<const void *> in;
        for (std::size_t i = 0; i < terms; ++i) {
            in.push_back(place_.filled(static_cast<float>(i) * 1.1f));
        }
        std::vector<float> expected = place_.get(in[0]);
        for (std::size_t i = 1; i < terms; ++i) {
            const std::vector<float> term = place_.get(in[i]);
            for (std::size_t k = 0; k < kCount; ++k) {
                expected[k] += term[k];
            }
        }
        void *const sum = *place_.vectors().make();
        ASSERT_TRUE(place_.vectors().add(sum, in).ok());
        ASSERT_TRUE(place_.vectors().finish().ok());
        EXPECT_EQ(place_.get(sum), expected) << terms << " terms";
    }
}

TEST_P(WspVectorsTest, TheFirstTermMayBeTheSum)
{
    void *const sum = place_.filled(1);
    const void *const in[] = {sum, place_.filled(2)};
    std::vector<float> expected = place_.get(sum);
    const std::vector<float> term = place_.get(in[1]);
    for (std::size_t k = 0; k < kCount; ++k) {
        expected[k] += term[k];
    }
    ASSERT_TRUE(place_.vectors().add(sum, in).ok());
    ASSERT_TRUE(place_.vectors().finish().ok());
    EXPECT_EQ(place_.get(sum), expected);
}

TEST_P(WspVectorsTest, ClearedAreZero)
{
    void *const vector = place_.filled(3);
    ASSERT_TRUE(place_.vectors().clear(vector).ok());
    ASSERT_TRUE(place_.vectors().finish().ok());
    EXPECT_EQ(place_.get(vector), std::vector<float>(kCount, 0));
}

INSTANTIATE_TEST_SUITE_P(Host, WspVectorsTest, ::testing::Values(false));
#if HETCOLL_WITH_CUDA
INSTANTIATE_TEST_SUITE_P(Device, WspVectorsTest, ::testing::Values(true));

TEST(WspDeviceVectorsTest, NothingIsCopiedToTheHostAndBack)
{
    const Place place(true);
    void *const sum = place.filled(1);
    const void *const in[] = {sum, place.filled(2), place.filled(3)};
    const test::CallCount down("dtoh_bytes"), up("htod_bytes"), launches("launches");
    ASSERT_TRUE(place.vectors().add(sum, in).ok());
    ASSERT_TRUE(place.vectors().finish().ok());
    EXPECT_EQ(down.get(), 0u);
    EXPECT_EQ(up.get(), 0u);
    EXPECT_EQ(launches.get(), 1u);
}

TEST(WspDeviceVectorsTest, HostMemoryIsNoUpdateForThem)
{
    const Place place(true);
    const std::vector<float> update(kCount);
    const Status status = place.vectors().check(update.data());
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), Errc::kInvalid);
}

TEST(WspDeviceVectorsTest, AFailingDriverCallIsAnErrorThatNamesIt)
{
    const Place place(true);
    const test::Faults faults("cuMemAlloc:*:2,cuLaunchKernel:*:999");
    const auto made = place.vectors().make();
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.status().code(), Errc::kNoMemory);
    float *const nowhere = nullptr;
    const void *const in[] = {nowhere, nowhere};
    const Status status = place.vectors().add(nowhere, in);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find("cuLaunchKernel"), std::string::npos) << status.message();
}
#endif

} // namespace
} // namespace hetcoll
