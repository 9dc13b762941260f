#include "engine_flag_names.h"

#include <gtest/gtest.h>

#include <bit>
#include <type_traits>
#include <vector>

namespace hetcoll {
namespace {

static_assert(sizeof(Flags) == 2);
static_assert(!std::is_convertible_v<int, Flags> && !std::is_convertible_v<Flags, int>);

TEST(FlagsTest, EveryFlagIsABitOfItsOwn)
{
    Flags seen{};
    for (const auto &[flag, name] : test::kFlagNames) {
        EXPECT_EQ(std::popcount(static_cast<unsigned>(flag)), 1) << name;
        EXPECT_FALSE(any(seen, flag)) << name;
        seen |= flag;
    }
    EXPECT_EQ(seen, ~Flags{}) << "a bit has no name";
}

TEST(FlagsTest, AFailingTestPrintsNames)
{
    EXPECT_EQ(::testing::PrintToString(kDeviceMemory | kFailed), "kDeviceMemory | kFailed");
    EXPECT_EQ(::testing::PrintToString(std::vector{kNewBuffers, Flags{}}), "{ kNewBuffers, none }");
    EXPECT_EQ(::testing::PrintToString(Differences::kType | Differences::kCount), "kType | kCount");
}

TEST(FlagsTest, SomeOfSeveralAreEnoughForAny)
{
    const Flags said = kDeviceMemory | kNewBuffers;
    EXPECT_TRUE(any(said, kNewBuffers));
    EXPECT_TRUE(any(said, kHostMemory | kNewBuffers));
    EXPECT_FALSE(any(said, kHostMemory | kMustStage));
    EXPECT_FALSE(any(said, Flags{}));
    EXPECT_FALSE(any(Flags{}, ~Flags{}));
}

TEST(FlagsTest, TheComplementLeavesAllOthers)
{
    Flags said = kDeviceMemory | kNoMapping | kNewBuffers;
    said &= ~(kNoMapping | kNewBuffers);
    EXPECT_EQ(said, kDeviceMemory);
    EXPECT_EQ(static_cast<unsigned>(~Flags{}), 0xffffu);
}

TEST(FlagsTest, AFlagOnAConditionIsThereOrNot)
{
    EXPECT_EQ(flags_if(true, kFailed), kFailed);
    EXPECT_EQ(flags_if(false, kFailed), Flags{});
}

} // namespace
} // namespace hetcoll
