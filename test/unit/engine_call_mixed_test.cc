// Calls above the small limit with device memory on some ranks and host memory on others.
#include "test/unit/engine_scripted_peer.h"

namespace hetcoll::test {
namespace {

using Said = std::vector<Message>;

class MixedCallTest : public CallTest {
protected:
    void answer(Flags here, Flags there)
    {
        here_ = here;
        peer_.answer({says(there), says(there), data_of(theirs(kMany)), says(there)});
    }
    [[nodiscard]] Said whole_call() const
    {
        return {says(here_), says(here_), data_of(mine(kMany)), says(here_)};
    }
    Flags here_{};
};

TEST_F(MixedCallTest, RanksOfBothKindsAgreeTwiceRunAndAgree)
{
    const std::pair<Where, Flags> kinds[] = {{Where::kDevice, kDeviceMemory},
                                             {Where::kHost, kHostMemory}};
    for (const auto &[where, here] : kinds) {
        Numbers<int> vector(where, mine(kMany));
        answer(here, ~here & (kDeviceMemory | kHostMemory));
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
        EXPECT_EQ(peer_.said(), whole_call());
        EXPECT_TRUE(peer_.is_over());
        EXPECT_EQ(vector.read(), sums(kMany));
    }
    EXPECT_EQ(previous_.calls, 0);
    EXPECT_FALSE(comm_->planner().peers().known());
}

TEST_F(MixedCallTest, BuffersOfBothKindsOnOneRankAreAMixedCall)
{
    Numbers<int> device(Where::kDevice, mine(kMany)), host(Where::kHost, theirs(kMany));
    answer(kDeviceMemory | kHostMemory, kDeviceMemory);
    EXPECT_EQ(run(call(device, host, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), whole_call());
    EXPECT_EQ(host.read(), sums(kMany));
}

TEST_F(MixedCallTest, AnErrorInTheSecondAgreementIsTheResult)
{
    const std::pair<Flags, int> results[] = {{kOutOfRange, HETCOLL_ERROR_RANGE},
                                             {kFailed, HETCOLL_ERROR_DEVICE}};
    for (const auto &[flags, result] : results) {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer({says(kHostMemory), says(kHostMemory | flags)});
        EXPECT_EQ(run(call(vector, vector, kMany)), result) << flags;
        EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory), says(kDeviceMemory)})) << flags;
    }
}

TEST_F(MixedCallTest, APeerThatCannotMakeReadyMakesAllStage)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    previous_.output = sums(kMany);
    peer_.answer(
        {says(kHostMemory), says(kHostMemory | kMustStage), says(kHostMemory | kMustStage)});
    EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), Said(3, says(kDeviceMemory)));
    EXPECT_EQ(previous_.said, 3u);
    EXPECT_EQ(vector.read(), sums(kMany));
}

TEST_F(MixedCallTest, AFailureInTheClosingIsTheResult)
{
    Numbers<int> vector(Where::kHost, mine(kMany));
    peer_.answer({says(kDeviceMemory), says(kDeviceMemory), data_of(theirs(kMany)),
                  says(kDeviceMemory | kFailed)});
    EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said().size(), 4u);
}

} // namespace
} // namespace hetcoll::test
