// Whether memory is reachable is tried: the answer is that of the driver and of the bytes read.
#include "test/unit/transport_peer.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

PeerAnswer probe(const Peer &user, const Peer &owner, const ReachOffer &offer)
{
    user.tell({.ask = Ask::kProbe, .owner = owner.identity(), .offer = offer});
    PeerAnswer answer;
    while (answer.reach == Reach::kPending) {
        answer = user.ask(Ask::kProbeStep);
    }
    return answer;
}

TEST(ReachProbeTest, AGpuReachesTheMemoryOfAnotherProcess)
{
    const std::vector<std::string> two{"EMU_NUM_DEVICES=2"};
    const Peer owner(two, 0), user(two, 1);
    const PeerAnswer offer = owner.ask(Ask::kOffer);
    ASSERT_TRUE(offer.ok) << offer.message;
    const PeerAnswer answer = probe(user, owner, offer.offer);
    EXPECT_EQ(answer.reach, Reach::kYes) << answer.message;
    EXPECT_EQ(user.counters().mappings, 0u); // the owner will free it
}

TEST(ReachProbeTest, GpusApartDoNot)
{
    const std::vector<std::string> apart{"EMU_NUM_DEVICES=2", "EMU_NO_PEER=0-1"};
    const Peer owner(apart, 0), user(apart, 1);
    const PeerAnswer answer = probe(user, owner, owner.ask(Ask::kOffer).offer);
    EXPECT_EQ(answer.reach, Reach::kNo);
    EXPECT_NE(std::string(answer.message).find("cuIpcOpenMemHandle"), std::string::npos);
}

TEST(ReachProbeTest, MemoryThatReadsAsSomethingElseIsNotReached)
{
    const Peer owner, user;
    ReachOffer offer = owner.ask(Ask::kOffer).offer;
    ++offer.seed;
    const PeerAnswer answer = probe(user, owner, offer);
    EXPECT_EQ(answer.reach, Reach::kNo);
    EXPECT_NE(std::string(answer.message).find("reads back other bytes"), std::string::npos);
}

TEST(ReachProbeTest, MemoryThatAKernelDoesNotReadIsNotReached)
{
    const Peer owner, user({"HETCOLL_TEST_LOST_LAUNCH=1"});
    const PeerAnswer answer = probe(user, owner, owner.ask(Ask::kOffer).offer);
    EXPECT_EQ(answer.reach, Reach::kNo);
    EXPECT_NE(std::string(answer.message).find("reads back other bytes"), std::string::npos);
}

TEST(ReachProbeTest, MemoryThatKernelsDoNotWriteIsNotReached)
{
    const Peer owner, user({"HETCOLL_TEST_LOST_LAUNCH=writes"});
    const PeerAnswer answer = probe(user, owner, owner.ask(Ask::kOffer).offer);
    EXPECT_EQ(answer.reach, Reach::kNo);
    EXPECT_NE(std::string(answer.message).find("does not hold what was written"),
              std::string::npos);
}

// Another peer may have had the same place.
TEST(ReachProbeTest, OneWriteThatIsLostIsMadeAgain)
{
    const Peer owner, user({"HETCOLL_TEST_LOST_LAUNCH=2"});
    EXPECT_EQ(probe(user, owner, owner.ask(Ask::kOffer).offer).reach, Reach::kYes);
}

TEST(ReachProbeTest, WithoutKernelsCopiesTell)
{
    const Peer owner, user;
    const ReachOffer offer = owner.ask(Ask::kOffer).offer;
    user.set_faults("cuLaunchKernel:*:209");
    EXPECT_EQ(probe(user, owner, offer).reach, Reach::kYes);
}

class ProbeFaultTest : public ::testing::TestWithParam<const char *> {};

TEST_P(ProbeFaultTest, IsAReasonOrNoOffer)
{
    const std::string fault = std::string(GetParam()) + ":1:999";
    {
        const Peer owner;
        owner.set_faults(fault.c_str());
        const PeerAnswer offer = owner.ask(Ask::kOffer);
        EXPECT_TRUE(offer.ok || std::string(offer.message) != "");
    }
    const Peer owner, user;
    const ReachOffer offer = owner.ask(Ask::kOffer).offer;
    user.set_faults(fault.c_str());
    const PeerAnswer made =
        user.ask({.ask = Ask::kProbe, .owner = owner.identity(), .offer = offer});
    if (!made.ok) {
        EXPECT_STRNE(made.message, "");
        return;
    }
    PeerAnswer answer;
    while (answer.reach == Reach::kPending) {
        answer = user.ask(Ask::kProbeStep);
    }
    EXPECT_TRUE(answer.reach == Reach::kYes || std::string(answer.message) != "");
}

INSTANTIATE_TEST_SUITE_P(DriverCalls, ProbeFaultTest,
                         ::testing::Values("cuMemHostAlloc", "cuStreamCreateWithPriority",
                                           "cuEventCreate", "cuMemAlloc", "cuPointerGetAttributes",
                                           "cuIpcGetMemHandle", "cuIpcOpenMemHandle",
                                           "cuMemcpyAsync", "cuLaunchKernel", "cuEventRecord",
                                           "cuEventQuery", "cuCtxPushCurrent",
                                           "cuPointerGetAttribute"));

} // namespace
} // namespace hetcoll::test
