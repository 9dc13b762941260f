// Calls up to the small limit: one meeting that sums the vector. And calls of one rank.
#include "test/unit/engine_scripted_peer.h"

namespace hetcoll::test {
namespace {

class SmallCallTest : public CallTest {
protected:
    // The only meeting: what this rank says in it.
    [[nodiscard]] std::vector<Message> one_meeting(Flags flags) const
    {
        return {sum_of(mine(kFew), flags)};
    }
    void answer(Flags flags) { peer_.answer({sum_of(theirs(kFew), flags)}); }
};

TEST_F(SmallCallTest, HostMemoryIsSummedInOneMeeting)
{
    Numbers<int> send(Where::kHost, mine(kFew)), recv(Where::kHost, theirs(kFew));
    answer(kHostMemory);
    EXPECT_EQ(run(call(send, recv, kFew)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), one_meeting(kHostMemory));
    EXPECT_EQ(recv.read(), sums(kFew));
    EXPECT_EQ(send.read(), mine(kFew));
    EXPECT_EQ(previous_.calls, 0);
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), 1u);
}

TEST_F(SmallCallTest, DeviceMemoryIsSummedInOneMeetingAndTheSumCopiedBack)
{
    Numbers<int> send(Where::kDevice, mine(kFew)), recv(Where::kDevice, theirs(kFew));
    answer(kDeviceMemory);
    EXPECT_EQ(run(call(send, recv, kFew)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), one_meeting(kDeviceMemory));
    EXPECT_EQ(recv.read(), sums(kFew));
    EXPECT_EQ(send.read(), mine(kFew));
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), 1u);
}

// Steps with copies that stay unfinished; the program has no context current meanwhile.
TEST_F(SmallCallTest, AWaitForACopyAsksManyTimesInEachVisitOfTheContext)
{
    constexpr int kSteps = 10, kAsked = 64, kAskedByOthers = 8;
    Numbers<int> first(Where::kDevice, mine(kFew)); // of the call that makes memory and streams
    answer(kDeviceMemory);
    ASSERT_EQ(run(call(first, first, kFew)), HETCOLL_SUCCESS);
    for (const bool is_blocking : {true, false}) {
        Numbers<int> vector(Where::kDevice, mine(kFew));
        answer(kDeviceMemory);
        hetcoll_call made = call(vector, vector, kFew);
        if (!is_blocking) {
            made.reduce = [](void *, const void *, void *, std::size_t) {};
        }
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(nullptr));
        HeldDevices held;
        Operation operation(*comm_, made);
        ASSERT_FALSE(operation.step()); // starts the copy
        const CallCount visits("cuCtxPushCurrent"), leaves("cuCtxPopCurrent"),
            questions("cuEventQuery");
        for (int step = 0; step < kSteps; ++step) {
            ASSERT_FALSE(operation.step());
            CUcontext current = cuda().context;
            HETCOLL_REQUIRE(cuda().driver->cuCtxGetCurrent(&current));
            EXPECT_EQ(current, nullptr);
        }
        EXPECT_EQ(visits.get(), kSteps);
        EXPECT_EQ(leaves.get(), kSteps);
        EXPECT_EQ(questions.get(), kSteps * (is_blocking ? kAsked : kAskedByOthers));
        held.release();
        EXPECT_EQ(finish(operation), HETCOLL_SUCCESS);
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        EXPECT_EQ(vector.read(), sums(kFew));
    }
}

TEST_F(SmallCallTest, InPlaceTheSumReplacesTheInput)
{
    for (const Where where : {Where::kHost, Where::kDevice}) {
        Numbers<int> vector(where, mine(kFew));
        answer(kHostMemory);
        EXPECT_EQ(run(call(vector, vector, kFew)), HETCOLL_SUCCESS);
        EXPECT_EQ(vector.read(), sums(kFew));
    }
}

TEST_F(SmallCallTest, OneBufferMayBeOnTheHostAndTheOtherOnTheDevice)
{
    Numbers<int> host(Where::kHost, mine(kFew)), device(Where::kDevice, mine(kFew));
    answer(kDeviceMemory);
    EXPECT_EQ(run(call(host, device, kFew)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), one_meeting(kDeviceMemory));
    EXPECT_EQ(device.read(), sums(kFew));

    upload(static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(device.data())), mine(kFew));
    answer(kDeviceMemory);
    EXPECT_EQ(run(call(device, host, kFew)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), one_meeting(kDeviceMemory | kHostMemory));
    EXPECT_EQ(host.read(), sums(kFew));
}

TEST_F(SmallCallTest, AnErrorOfThePeerIsThisRanksToo)
{
    const std::pair<Flags, int> results[] = {{kFailed, HETCOLL_ERROR_DEVICE},
                                             {kOutOfRange, HETCOLL_ERROR_RANGE},
                                             {kFailed | kOutOfRange, HETCOLL_ERROR_DEVICE}};
    for (const Where where : {Where::kHost, Where::kDevice}) {
        for (const auto &[flags, result] : results) {
            Numbers<int> vector(where, mine(kFew));
            answer(kHostMemory | flags);
            EXPECT_EQ(run(call(vector, vector, kFew)), result) << flags;
            EXPECT_EQ(peer_.said().size(), 1u) << flags;
            EXPECT_TRUE(peer_.is_over());
        }
    }
    EXPECT_EQ(counter(HETCOLL_CALLS_FAILED), 6u);
}

TEST_F(SmallCallTest, WhatThePeerSaysOfLargerCallsChangesNothing)
{
    for (const Flags flags : {kMustStage, kNoMapping, kNewBuffers, kUnknownOp}) {
        Numbers<int> vector(Where::kDevice, mine(kFew));
        answer(kDeviceMemory | flags);
        EXPECT_EQ(run(call(vector, vector, kFew)), HETCOLL_SUCCESS) << flags;
        EXPECT_EQ(peer_.said(), one_meeting(kDeviceMemory)) << flags;
        EXPECT_EQ(vector.read(), sums(kFew)) << flags;
    }
}

TEST_F(SmallCallTest, ARankWhoseInputCannotBeReadSaysSoAndStays)
{
    Numbers<int> vector(Where::kDevice, mine(kFew));
    answer(kDeviceMemory);
    {
        const Faults faults("cuMemcpyAsync:*:999,cuMemcpy:*:999");
        EXPECT_EQ(run(call(vector, vector, kFew)), HETCOLL_ERROR_DEVICE);
    }
    ASSERT_EQ(peer_.said().size(), 1u);
    EXPECT_EQ(flags_of(peer_.said()[0]), kDeviceMemory | kFailed);
    EXPECT_TRUE(peer_.is_over());
}

TEST_F(SmallCallTest, ARankThatCannotFindItsBuffersSaysZerosAndFails)
{
    Numbers<int> vector(Where::kDevice, mine(kFew));
    answer(kDeviceMemory);
    {
        const Faults faults("cuPointerGetAttributes:*:999,cuPointerGetAttribute:*:999");
        EXPECT_EQ(run(call(vector, vector, kFew)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(), (std::vector<Message>{sum_of(std::vector<int>(kFew), kFailed)}));
}

// Too late to tell anybody.
TEST_F(SmallCallTest, ASumThatCannotBeCopiedBackFailsThisRankOnly)
{
    Numbers<int> send(Where::kHost, mine(kFew)), recv(Where::kDevice, theirs(kFew));
    answer(kDeviceMemory);
    {
        const Faults faults("cuMemcpyAsync:*:999,cuMemcpy:*:999");
        EXPECT_EQ(run(call(send, recv, kFew)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(), one_meeting(kDeviceMemory));
}

TEST_F(SmallCallTest, ALostMeetingEndsTheCallWithTheNetworksCode)
{
    for (const Where where : {Where::kHost, Where::kDevice}) {
        Numbers<int> vector(where, mine(kFew));
        const Messages *const before = &comm_->messages();
        peer_.answer({ScriptedPeer::Answer(kNetworkCode)});
        EXPECT_EQ(run(call(vector, vector, kFew)), kNetworkCode);
        EXPECT_EQ(peer_.said().size(), 1u);
        EXPECT_NE(&comm_->messages(), before); // a message may still arrive there
        EXPECT_EQ(vector.read(), mine(kFew));
        make_comm();
    }
}

TEST_F(SmallCallTest, ACallWaitsForItsMeeting)
{
    Numbers<int> vector(Where::kHost, mine(kFew));
    const hetcoll_call made = call(vector, vector, kFew);
    Operation operation(*comm_, made);
    EXPECT_EQ(finish(operation), std::nullopt);
    EXPECT_EQ(peer_.said(), one_meeting(kHostMemory));
    EXPECT_EQ(vector.read(), mine(kFew));
}

// ---- a user-defined op ----

class SmallUserOpTest : public CallTest {
protected:
    static constexpr std::size_t kHalves = 2 * kFew; // as many bytes as kFew ints

    // On halves. A rank that does not know the op knows their size.
    hetcoll_call user_call(Numbers<int> &vector, bool known)
    {
        hetcoll_call made = call(vector, vector, kFew);
        made.count = kHalves;
        made.kind = known ? static_cast<int>(HETCOLL_UINT16) : -1;
        made.user_op = 2;
        made.reason = HETCOLL_REASON_USER_OP;
        previous_.output = sums(kFew);
        return made;
    }
};

TEST_F(SmallUserOpTest, KnownToAllItIsASmallCall)
{
    Numbers<int> vector(Where::kDevice, mine(kFew));
    peer_.answer({sum_of(theirs(kFew), kDeviceMemory)});
    EXPECT_EQ(run(user_call(vector, true)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (std::vector<Message>{sum_of(mine(kFew), kDeviceMemory)}));
    EXPECT_EQ(vector.read(), sums(kFew));
    EXPECT_EQ(previous_.calls, 0);
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), 1u);
}

TEST_F(SmallUserOpTest, KnownHereAndUnknownThereItIsStaged)
{
    Numbers<int> vector(Where::kDevice, mine(kFew));
    peer_.answer({sum_of(theirs(kFew), kDeviceMemory | kUnknownOp), says(kDeviceMemory)});
    EXPECT_EQ(run(user_call(vector, true)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(),
              (std::vector<Message>{sum_of(mine(kFew), kDeviceMemory), says(kDeviceMemory)}));
    EXPECT_EQ(previous_.calls, 1);
    EXPECT_EQ(previous_.input, mine(kFew));
    EXPECT_EQ(vector.read(), sums(kFew));
    EXPECT_EQ(counter(HETCOLL_STAGED_OTHER_RANK), 1u);
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), 0u);
}

TEST_F(SmallUserOpTest, UnknownHereItIsStagedAfterTheSameMeeting)
{
    Numbers<int> vector(Where::kDevice, mine(kFew));
    peer_.answer({sum_of(theirs(kFew), kDeviceMemory), says(kDeviceMemory)});
    EXPECT_EQ(run(user_call(vector, false)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(),
              (std::vector<Message>{sum_of(std::vector<int>(kFew), kDeviceMemory | kUnknownOp),
                                    says(kDeviceMemory | kUnknownOp)}));
    EXPECT_EQ(previous_.input, mine(kFew));
    EXPECT_EQ(vector.read(), sums(kFew));
    EXPECT_EQ(counter(HETCOLL_STAGED_USER_OP), 1u);
}

// ---- one rank ----

class OneRankTest : public CallTest {
protected:
    OneRankTest() : CallTest(usual_settings(), 1) {}
};

TEST_F(OneRankTest, DeviceMemoryIsCopiedAndNobodyAsked)
{
    for (const std::size_t count : {kFew, kMany}) {
        Numbers<int> send(Where::kDevice, mine(count)), recv(Where::kDevice, theirs(count));
        EXPECT_EQ(run(call(send, recv, count)), HETCOLL_SUCCESS);
        EXPECT_EQ(recv.read(), mine(count));
    }
    EXPECT_TRUE(peer_.said().empty());
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), 2u);
}

TEST_F(OneRankTest, HostMemoryIsThePreviousModules)
{
    Numbers<int> send(Where::kHost, mine(kMany)), recv(Where::kHost, theirs(kMany));
    previous_.code = -5;
    EXPECT_EQ(run(call(send, recv, kMany)), -5);
    EXPECT_EQ(previous_.send, send.data());
    EXPECT_EQ(previous_.recv, recv.data());

    hetcoll_call nonblocking = call(send, recv, kMany);
    nonblocking.previous_allreduce = nullptr;
    EXPECT_EQ(run(nonblocking), HETCOLL_SUCCESS);
    EXPECT_EQ(recv.read(), mine(kMany));
    EXPECT_EQ(previous_.calls, 1);
}

TEST_F(OneRankTest, AFailedCopyIsTheResult)
{
    Numbers<int> send(Where::kDevice, mine(kMany)), recv(Where::kDevice, theirs(kMany));
    const Faults faults("cuMemcpyAsync:*:999,cuMemcpy:*:999");
    EXPECT_EQ(run(call(send, recv, kMany)), HETCOLL_ERROR_DEVICE);
}

} // namespace
} // namespace hetcoll::test
