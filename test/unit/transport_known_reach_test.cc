// A process asks the driver one time whose memory its GPUs reach.
#include "transport/known_reach.h"

#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;
using test::Faults;

class KnownReachTest : public ::testing::Test {
protected:
    // Until it is filled, or fails.
    Result<std::optional<ReachOffer>> offer()
    {
        const ContextScope scope(*cuda().driver, cuda().context);
        auto offered = known_.offer(device_, *exporter_);
        while (offered.ok() && !*offered) {
            offered = known_.offer(device_, *exporter_);
        }
        return offered;
    }
    Reach find(const ReachOffer &offered) { return known_.find(*device_, owner_, offered, why_); }

    std::shared_ptr<Device> device_ = std::make_shared<Device>(*cuda().driver, cuda().context, -1);
    std::unique_ptr<Exporter> exporter_ = Exporter::create(*cuda().driver, nullptr, Log{});
    KnownReach known_;
    ProcessIdentity owner_{};
    std::string why_;
};

TEST_F(KnownReachTest, MemoryIsOfferedOnce)
{
    const auto first = offer();
    ASSERT_TRUE(first.ok()) << first.status().message();
    const CallCount made("cuMemAlloc"), copied("cuMemcpyAsync");
    const auto second = offer();
    ASSERT_TRUE(second.ok());
    EXPECT_EQ((*second)->seed, (*first)->seed);
    EXPECT_EQ((*second)->buffer.buffer_id, (*first)->buffer.buffer_id);
    EXPECT_EQ(made.get() + copied.get(), 0u);
}

TEST_F(KnownReachTest, WhatCannotBeSharedIsNotMadeAgain)
{
    std::string why;
    {
        const Faults faults("cuIpcGetMemHandle:*:801");
        const auto offered = offer();
        ASSERT_FALSE(offered.ok());
        why = offered.status().message();
    }
    const CallCount made("cuMemAlloc"), freed("cuMemFree");
    const auto again = offer();
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.status().message(), why);
    EXPECT_EQ(made.get() + freed.get(), 0u);
}

TEST_F(KnownReachTest, ALackOfMemoryMayBeOver)
{
    {
        const Faults faults("cuMemAlloc:*:2");
        EXPECT_FALSE(offer().ok());
    }
    EXPECT_TRUE(offer().ok());
}

// Ranks wait for each other's offers, so one that is never made would hang all of them.
TEST_F(KnownReachTest, AContextThatIsGoneOffersNothing)
{
    const Faults faults("cuPointerGetAttribute:*:709");
    const auto offered = known_.offer(device_, *exporter_);
    ASSERT_FALSE(offered.ok());
    EXPECT_EQ(offered.status().message(), "the context of a buffer is gone");
}

TEST_F(KnownReachTest, ATrialIsOfOneOfferOfOneOwner)
{
    const ReachOffer tried{.buffer = {}, .seed = 7}, other{.buffer = {}, .seed = 8};
    EXPECT_EQ(find(tried), Reach::kPending);
    known_.note(*device_, owner_, tried, Reach::kNo, "no link");
    EXPECT_EQ(find(tried), Reach::kNo);
    EXPECT_EQ(why_, "no link");
    EXPECT_EQ(find(other), Reach::kPending);
    ++owner_.pid;
    EXPECT_EQ(find(tried), Reach::kPending);
    known_.note(*device_, owner_, tried, Reach::kYes, "");
    EXPECT_EQ(find(tried), Reach::kYes);
}

} // namespace
} // namespace hetcoll
