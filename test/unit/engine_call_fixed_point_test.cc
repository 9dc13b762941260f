// coll_hetcoll_fixed_point: an allreduce of integers in place of one of floats.
#include "test/unit/engine_scripted_peer.h"

namespace hetcoll::test {
namespace {

using Said = std::vector<Message>;

class FixedPointCallTest : public CallTest {
protected:
    static constexpr int kBits = 8;

    static hetcoll_settings fixed_point_settings()
    {
        hetcoll_settings settings = usual_settings();
        settings.fixed_point = kBits;
        return settings;
    }
    FixedPointCallTest() : CallTest(fixed_point_settings()) {}

    static std::vector<float> floats(std::size_t count, float first)
    {
        std::vector<float> numbers(count);
        for (std::size_t i = 0; i < count; ++i) {
            numbers[i] = first + static_cast<float>(i);
        }
        return numbers;
    }
    // 1.5 + i here, 0.25 + i there, and as integers.
    static std::vector<float> my_floats(std::size_t count) { return floats(count, 1.5f); }
    static std::vector<int> my_integers(std::size_t count) { return line(count, 256, 384); }
    static std::vector<int> their_integers(std::size_t count) { return line(count, 256, 64); }
    static std::vector<float> sum_of_floats(std::size_t count)
    {
        std::vector<float> sum = floats(count, 0.0f);
        for (float &number : sum) {
            number = 2 * number + 1.75f;
        }
        return sum;
    }
    // Rank 1's flags in a small call; with device memory somewhere the ranks meet once more.
    static std::vector<ScriptedPeer::Answer> small_call(Flags flags)
    {
        return {sum_of(their_integers(kFew), flags), says(flags)};
    }
    hetcoll_call float_call(Numbers<float> &send, Numbers<float> &recv, std::size_t count)
    {
        return call(send, recv, count, HETCOLL_FLOAT32);
    }
};

TEST_F(FixedPointCallTest, FloatsAreSummedAsIntegers)
{
    const std::pair<Where, Flags> kinds[] = {{Where::kHost, kHostMemory},
                                             {Where::kDevice, kDeviceMemory}};
    for (const auto &[where, flags] : kinds) {
        Numbers<float> send(where, my_floats(kFew)), recv(where, floats(kFew, 0));
        peer_.answer(small_call(flags));
        EXPECT_EQ(run(float_call(send, recv, kFew)), HETCOLL_SUCCESS);
        EXPECT_EQ(peer_.said(), where == Where::kHost
                                    ? (Said{sum_of(my_integers(kFew), flags)})
                                    : (Said{sum_of(my_integers(kFew), flags), says(flags)}));
        EXPECT_EQ(recv.read(), sum_of_floats(kFew));
        EXPECT_EQ(send.read(), my_floats(kFew));
    }
}

TEST_F(FixedPointCallTest, InPlaceTheFloatsReplaceTheFloats)
{
    for (const Where where : {Where::kHost, Where::kDevice}) {
        Numbers<float> vector(where, my_floats(kFew));
        peer_.answer(small_call(kDeviceMemory));
        EXPECT_EQ(run(float_call(vector, vector, kFew)), HETCOLL_SUCCESS);
        EXPECT_EQ(vector.read(), sum_of_floats(kFew));
    }
}

TEST_F(FixedPointCallTest, AnInputInOtherMemoryThanTheResultIsConvertedThere)
{
    Numbers<float> host(Where::kHost, my_floats(kFew)), device(Where::kDevice, floats(kFew, 0));
    peer_.answer(small_call(kDeviceMemory));
    EXPECT_EQ(run(float_call(host, device, kFew)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (Said{sum_of(my_integers(kFew), kDeviceMemory), says(kDeviceMemory)}));
    EXPECT_EQ(device.read(), sum_of_floats(kFew));
}

// Open MPI cannot sum the integers: a schedule of ours does.
TEST_F(FixedPointCallTest, AboveTheSmallLimitThePreviousModuleIsNotAsked)
{
    Numbers<float> vector(Where::kHost, my_floats(kMany));
    const Message said = says(kHostMemory);
    peer_.answer({said, said, data_of(their_integers(kMany)), said});
    EXPECT_EQ(run(float_call(vector, vector, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (Said{said, said, data_of(my_integers(kMany)), said}));
    EXPECT_EQ(vector.read(), sum_of_floats(kMany));
    EXPECT_EQ(previous_.calls, 0);
}

TEST_F(FixedPointCallTest, OnDevicesTheIntegersGoTheWayOfIntegers)
{
    find_peers();
    Numbers<float> vector(Where::kDevice, my_floats(kMany));
    const Message said = says(kDeviceMemory);
    peer_.answer({said, data_of(their_integers(kMany)), said, said});
    EXPECT_EQ(run(float_call(vector, vector, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (Said{said, data_of(my_integers(kMany)), said, said}));
    EXPECT_EQ(vector.read(), sum_of_floats(kMany));
}

// ---- converting back ----

TEST_F(FixedPointCallTest, ARankThatCannotConvertBackSaysSoInTheLastMeeting)
{
    Numbers<float> vector(Where::kDevice, my_floats(kFew));
    peer_.answer(small_call(kDeviceMemory));
    {
        const Faults faults("cuLaunchKernel:2:999");
        EXPECT_EQ(run(float_call(vector, vector, kFew)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(),
              (Said{sum_of(my_integers(kFew), kDeviceMemory), says(kDeviceMemory | kFailed)}));
}

TEST_F(FixedPointCallTest, ARankThatCannotCopyTheSumSaysSoInTheLastMeeting)
{
    Numbers<float> vector(Where::kDevice, my_floats(kFew));
    peer_.answer(small_call(kDeviceMemory));
    {
        const Faults faults("cuMemcpyAsync:2:999,cuMemcpy:1:999");
        EXPECT_EQ(run(float_call(vector, vector, kFew)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(),
              (Said{sum_of(my_integers(kFew), kDeviceMemory), says(kDeviceMemory | kFailed)}));
}

TEST_F(FixedPointCallTest, APeerThatCannotConvertBackFailsThisRankAndPeersAreFoundAnew)
{
    find_peers();
    Numbers<float> vector(Where::kDevice, my_floats(kFew));
    peer_.answer({sum_of(their_integers(kFew), kDeviceMemory), says(kDeviceMemory | kFailed)});
    EXPECT_EQ(run(float_call(vector, vector, kFew)), HETCOLL_ERROR_DEVICE);
    EXPECT_TRUE(peer_.is_over());
    EXPECT_FALSE(comm_->planner().peers().known());
}

TEST_F(FixedPointCallTest, APersistentCallThatCouldNotConvertBackStartsAgain)
{
    Numbers<float> vector(Where::kDevice, my_floats(kFew));
    const hetcoll_call made = float_call(vector, vector, kFew);
    Operation operation(*comm_, made, Start::kPersistent);
    peer_.answer(small_call(kDeviceMemory));
    {
        const Faults faults("cuLaunchKernel:2:999");
        EXPECT_EQ(finish(operation), HETCOLL_ERROR_DEVICE);
    }
    operation.rewind();
    upload(reinterpret_cast<CUdeviceptr>(vector.data()), my_floats(kFew));
    peer_.answer(small_call(kDeviceMemory));
    EXPECT_EQ(finish(operation), HETCOLL_SUCCESS);
    EXPECT_TRUE(peer_.is_over());
    EXPECT_EQ(vector.read(), sum_of_floats(kFew));
}

TEST_F(FixedPointCallTest, AnElementOutOfRangeIsSaidInTheFirstMeetingAndFailsAll)
{
    const std::pair<Where, Flags> kinds[] = {{Where::kHost, kHostMemory},
                                             {Where::kDevice, kDeviceMemory}};
    for (const auto &[where, flags] : kinds) {
        for (const std::size_t count : {kFew, kMany}) {
            const Message there = count == kFew ? sum_of(their_integers(kFew), flags) : says(flags);
            std::vector<float> input = my_floats(count);
            input[2] = 1e7f; // 2^8 of it and as much of another rank are more than 2^31
            Numbers<float> vector(where, input);
            peer_.answer({there});
            EXPECT_EQ(run(float_call(vector, vector, count)), HETCOLL_ERROR_RANGE);
            ASSERT_EQ(peer_.said().size(), 1u);
            EXPECT_EQ(flags_of(peer_.said()[0]), flags | kOutOfRange);
        }
    }
}

TEST_F(FixedPointCallTest, AnElementOutOfRangeOnAnotherRankFailsThisOne)
{
    Numbers<float> few(Where::kHost, my_floats(kFew)), many(Where::kDevice, my_floats(kMany));
    peer_.answer({sum_of(their_integers(kFew), kHostMemory | kOutOfRange)});
    EXPECT_EQ(run(float_call(few, few, kFew)), HETCOLL_ERROR_RANGE);
    EXPECT_EQ(peer_.said(), (Said{sum_of(my_integers(kFew), kHostMemory)}));
    peer_.answer({says(kDeviceMemory | kOutOfRange)});
    EXPECT_EQ(run(float_call(many, many, kMany)), HETCOLL_ERROR_RANGE);
    EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory)}));
}

TEST_F(FixedPointCallTest, ARankThatCannotConvertSaysSoInTheFirstMeeting)
{
    Numbers<float> vector(Where::kDevice, my_floats(kMany));
    peer_.answer({says(kDeviceMemory)});
    {
        const Faults faults("cuLaunchKernel:*:999,cuMemcpy:*:999");
        EXPECT_EQ(run(float_call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
    }
    ASSERT_EQ(peer_.said().size(), 1u);
    EXPECT_TRUE(any(flags_of(peer_.said()[0]), kFailed));
}

TEST_F(FixedPointCallTest, ALostMeetingEndsTheCallWithTheNetworksCode)
{
    Numbers<float> vector(Where::kDevice, my_floats(kFew));
    peer_.answer({ScriptedPeer::Answer(kNetworkCode)});
    EXPECT_EQ(run(float_call(vector, vector, kFew)), kNetworkCode);
    EXPECT_EQ(peer_.said().size(), 1u);
}

TEST_F(FixedPointCallTest, IntegersAreSummedAsTheyAre)
{
    Numbers<int> vector(Where::kHost, mine(kFew));
    peer_.answer({sum_of(theirs(kFew), kHostMemory)});
    EXPECT_EQ(run(call(vector, vector, kFew)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (Said{sum_of(mine(kFew), kHostMemory)}));
}

} // namespace
} // namespace hetcoll::test
