#include "engine/meeting/flags.h"

#include <gtest/gtest.h>

#include <bit>
#include <type_traits>

namespace hetcoll {
namespace {

static_assert(sizeof(Flags) == 2);
static_assert(!std::is_convertible_v<int, Flags> && !std::is_convertible_v<Flags, int>);

constexpr Flags kAll[] = {kDeviceMemory, kHostMemory,  kMustStage,    kFailed,    kNoMapping,
                          kNewBuffers,   kUnknownOp,   kOutOfRange,   kInputGone, kNoPage,
                          kNoRecord,     kUnreachable, kNoAggregator, kNeverMap,  kNewDevice};

TEST(FlagsTest, EveryFlagIsABitOfItsOwn)
{
    Flags seen{};
    for (const Flags flag : kAll) {
        EXPECT_EQ(std::popcount(static_cast<unsigned>(flag)), 1);
        EXPECT_FALSE(any(seen, flag)) << static_cast<unsigned>(flag);
        seen |= flag;
    }
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
