// Calls above the small limit: which meetings they hold, in which order, and what the ranks do
// after each.
#include "test/unit/engine_scripted_peer.h"

#include <memory>
#include <thread>

namespace hetcoll::test {
namespace {

using Said = std::vector<Message>;

class LargeCallTest : public CallTest {};

// ---- host memory everywhere ----

TEST_F(LargeCallTest, HostMemoryEverywhereIsThePreviousModulesAfterOneMeeting)
{
    Numbers<int> send(Where::kHost, mine(kMany)), recv(Where::kHost, theirs(kMany));
    previous_.output = sums(kMany);
    peer_.answer({says(kHostMemory)});
    EXPECT_EQ(run(call(send, recv, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (Said{says(kHostMemory)}));
    EXPECT_EQ(previous_.calls, 1);
    EXPECT_EQ(previous_.said, 1u);
    EXPECT_EQ(previous_.send, send.data());
    EXPECT_EQ(previous_.recv, recv.data());
    EXPECT_EQ(recv.read(), sums(kMany));
    EXPECT_EQ(counter(HETCOLL_CALLS_PREVIOUS), 1u);
}

TEST_F(LargeCallTest, ThePreviousModulesErrorIsHandedOn)
{
    Numbers<int> vector(Where::kHost, mine(kMany));
    previous_.code = -5;
    peer_.answer({says(kHostMemory)});
    EXPECT_EQ(run(call(vector, vector, kMany)), -5);
    EXPECT_EQ(peer_.said(), (Said{says(kHostMemory)}));
}

TEST_F(LargeCallTest, OnHostMemoryWhatThePeerSaysOfItsGpuChangesNothing)
{
    for (const Flags flags : {kMustStage, kNoMapping, kNewBuffers, kUnknownOp}) {
        Numbers<int> vector(Where::kHost, mine(kMany));
        peer_.answer({says(kHostMemory | flags)});
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS) << flags;
        EXPECT_EQ(peer_.said(), (Said{says(kHostMemory)})) << flags;
    }
    EXPECT_EQ(previous_.calls, 4);
}

// There is no previous module that could: the ranks reduce by messages of their own.
TEST_F(LargeCallTest, ANonblockingCallOnHostMemoryRunsAScheduleAfterASecondMeeting)
{
    Numbers<int> send(Where::kHost, mine(kMany)), recv(Where::kHost, theirs(kMany));
    hetcoll_call made = call(send, recv, kMany);
    made.previous_allreduce = nullptr;
    peer_.answer({says(kHostMemory), says(kHostMemory), data_of(theirs(kMany)), says(kHostMemory)});
    EXPECT_EQ(run(made), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (Said{says(kHostMemory), says(kHostMemory), data_of(mine(kMany)),
                                  says(kHostMemory)}));
    EXPECT_EQ(recv.read(), sums(kMany));
}

// ---- device memory everywhere ----

TEST_F(LargeCallTest, TheFirstDeviceCallFindsPeersAndAgreesAgain)
{
    Numbers<int> send(Where::kDevice, mine(kMany)), recv(Where::kDevice, theirs(kMany));
    const Message records = records_of_peer();
    peer_.answer({says(kDeviceMemory), records, prices_of_peer(), says(kDeviceMemory),
                  data_of(theirs(kMany)), says(kDeviceMemory)});
    EXPECT_EQ(run(call(send, recv, kMany)), HETCOLL_SUCCESS);
    ASSERT_EQ(peer_.said().size(), 6u);
    EXPECT_EQ(peer_.said()[0], says(kDeviceMemory));
    EXPECT_EQ(peer_.said()[1].size(), records.size());
    EXPECT_EQ(flags_of(peer_.said()[1]), Flags{}); // no problem with its own
    EXPECT_EQ(peer_.said()[2].size(), prices_of_peer().size());
    EXPECT_NE(peer_.said()[2], prices_of_peer()); // its own sizes have prices
    EXPECT_EQ(peer_.said()[3], says(kDeviceMemory));
    EXPECT_EQ(peer_.said()[4], data_of(mine(kMany)));
    EXPECT_EQ(peer_.said()[5], says(kDeviceMemory));
    EXPECT_EQ(recv.read(), sums(kMany));
    EXPECT_EQ(send.read(), mine(kMany));
    EXPECT_EQ(counter(HETCOLL_AGREEMENTS), 3u);
}

// Open MPI says that its messages carry device memory. They carry other bytes, when the test says
// so.
class TriedMessagesTest : public CallTest {
protected:
    void SetUp() override
    {
        CallTest::SetUp();
        find_peers();
        const auto start = [](void *self, auto, std::size_t, int, int, void **request) {
            *request = self;
            ++static_cast<TriedMessagesTest *>(self)->started_;
            return 0;
        };
        hetcoll_p2p self{};
        self.context = this;
        self.size = 1;
        self.isend = start;
        self.irecv = start;
        self.test = [](void *messages, void **) {
            return static_cast<TriedMessagesTest *>(messages)->arrive_ ? 1 : 0;
        };
        self.progress = [](void *) { ADD_FAILURE() << "a step made messages advance"; };
        process_->gpus().direct_messages().offer(self, 5);
        const hetcoll_facts facts[] = {process_->facts()};
        other_ = std::make_unique<Communicator>(*process_, self, facts[0], facts);
    }

    std::unique_ptr<Communicator> other_; // of this rank alone
    int started_ = 0;
    bool arrive_ = false;
};

TEST_F(TriedMessagesTest, AllCallsWaitForOneTrialAndLetOthersRun)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    Numbers<int> input(Where::kDevice, theirs(kMany)), result(Where::kDevice, mine(kMany));
    const hetcoll_call made = call(vector, vector, kMany), alone = call(input, result, kMany);
    Operation first(*other_, alone), second(*comm_, made);
    peer_.answer({says(kDeviceMemory), data_of(theirs(kMany)), says(kDeviceMemory)});
    for (int step = 0; step < 50 || started_ < 2; ++step) {
        ASSERT_FALSE(first.step() || second.step());
        std::this_thread::yield(); // to the device
    }
    EXPECT_TRUE(peer_.said().empty());
    arrive_ = true;
    EXPECT_EQ(finish(second), HETCOLL_SUCCESS); // though the other had begun the trial
    EXPECT_EQ(vector.read(), sums(kMany));
    EXPECT_EQ(finish(first), HETCOLL_SUCCESS);
    EXPECT_EQ(result.read(), theirs(kMany));
    EXPECT_EQ(started_, 2); // one message
    EXPECT_EQ(counter(HETCOLL_BYTES_DIRECT), 0u);
}

// They carry memory that cuMemAlloc made, with which they were tried. Open MPI aborts on a pool's.
class CarriedMessagesTest : public CallTest {
protected:
    void SetUp() override
    {
        CallTest::SetUp();
        find_peers();
        hetcoll_p2p self{};
        self.context = this;
        self.size = 1;
        self.isend = [](void *context, const void *buffer, std::size_t, int, int, void **request) {
            static_cast<CarriedMessagesTest *>(context)->from_ = buffer;
            *request = context;
            return 0;
        };
        self.irecv = [](void *context, void *buffer, std::size_t bytes, int, int, void **request) {
            static_cast<CarriedMessagesTest *>(context)->to_ = buffer;
            static_cast<CarriedMessagesTest *>(context)->bytes_ = bytes;
            *request = context;
            return 0;
        };
        self.test = [](void *context, void **) {
            const auto *const messages = static_cast<CarriedMessagesTest *>(context);
            HETCOLL_REQUIRE(cuda().driver->cuMemcpy(address(messages->to_),
                                                    address(messages->from_), messages->bytes_));
            return 1;
        };
        self.progress = [](void *) {};
        process_->gpus().direct_messages().offer(self, 5);
        const hetcoll_facts facts[] = {process_->facts()};
        other_ = std::make_unique<Communicator>(*process_, self, facts[0], facts);
    }
    static CUdeviceptr address(const void *pointer)
    {
        return reinterpret_cast<CUdeviceptr>(pointer);
    }

    std::unique_ptr<Communicator> other_; // of this rank alone
    const void *from_ = nullptr;
    void *to_ = nullptr;
    std::size_t bytes_ = 0;
};

TEST_F(CarriedMessagesTest, WhatAPoolMadeGoesThroughPinnedMemory)
{
    Numbers<int> input(Where::kDevice, theirs(kMany)), result(Where::kDevice, mine(kMany));
    const hetcoll_call alone = call(input, result, kMany);
    Operation first(*other_, alone);
    EXPECT_EQ(finish(first), HETCOLL_SUCCESS);
    auto bounce = process_->gpus().pool().borrow_device(
        *process_->gpus().pointers().find(input.data()), Sends::kDirectIfPossible);
    ASSERT_TRUE(bounce.ok() && (*bounce)->direct());
    process_->gpus().pool().give_back(std::move(*bounce));

    const std::vector<int> numbers = mine(kMany);
    const std::size_t bytes = kMany * sizeof(int);
    CUdeviceptr pool = 0;
    HETCOLL_REQUIRE(cuda().cuMemAllocAsync(&pool, bytes, nullptr));
    HETCOLL_REQUIRE(cuda().driver->cuMemcpy(pool, address(numbers.data()), bytes));
    hetcoll_call made = call(input, result, kMany);
    made.send = made.recv = reinterpret_cast<void *>(pool);
    peer_.answer({says(kDeviceMemory), data_of(theirs(kMany)), says(kDeviceMemory)});
    const std::uint64_t bounced = counter(HETCOLL_BYTES_BOUNCE);
    EXPECT_EQ(run(made), HETCOLL_SUCCESS);
    std::vector<int> sum(kMany);
    HETCOLL_REQUIRE(cuda().driver->cuMemcpy(address(sum.data()), pool, bytes));
    EXPECT_EQ(sum, sums(kMany));
    EXPECT_EQ(counter(HETCOLL_BYTES_DIRECT), 0u);
    EXPECT_EQ(counter(HETCOLL_BYTES_BOUNCE) - bounced, bytes);
    HETCOLL_REQUIRE(cuda().cuMemFreeAsync(pool, nullptr));
}

class DeviceCallTest : public CallTest {
protected:
    void SetUp() override
    {
        CallTest::SetUp();
        find_peers();
    }

    // An agreement, the vector, an agreement.
    void answer(Flags opening, Flags closing)
    {
        peer_.answer({says(opening), data_of(theirs(kMany)), says(closing)});
    }
    static Said whole_call()
    {
        return {says(kDeviceMemory), data_of(mine(kMany)), says(kDeviceMemory)};
    }
};

TEST_F(DeviceCallTest, LaterCallsAgreeRunAndAgree)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    answer(kDeviceMemory, kDeviceMemory);
    EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), whole_call());
    EXPECT_TRUE(peer_.is_over());
    EXPECT_EQ(vector.read(), sums(kMany));
    EXPECT_EQ(counter(HETCOLL_BYTES_BOUNCE), 2 * kMany * sizeof(int)); // with the first call's
    EXPECT_EQ(previous_.calls, 0);
}

TEST_F(DeviceCallTest, AnErrorOfThePeerInTheOpeningIsTheResultAndNothingIsSent)
{
    const std::pair<Flags, int> results[] = {{kOutOfRange, HETCOLL_ERROR_RANGE},
                                             {kFailed | kOutOfRange, HETCOLL_ERROR_DEVICE},
                                             {kFailed, HETCOLL_ERROR_DEVICE}};
    for (const auto &[flags, result] : results) {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer({says(kDeviceMemory | flags)});
        EXPECT_EQ(run(call(vector, vector, kMany)), result) << flags;
        EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory)})) << flags;
        EXPECT_EQ(vector.read(), mine(kMany)) << flags;
    }
}

TEST_F(DeviceCallTest, AFailureOfThePeerMakesTheNextCallFindPeersAnew)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    answer(kDeviceMemory, kDeviceMemory | kFailed);
    EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said(), whole_call());
    EXPECT_FALSE(comm_->planner().peers().known());
    find_peers();
}

TEST_F(DeviceCallTest, InTheClosingOnlyAFailureCounts)
{
    for (const Flags flags : {kMustStage, kNoMapping, kNewBuffers, kUnknownOp, kOutOfRange}) {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        answer(kDeviceMemory, kDeviceMemory | flags);
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS) << flags;
        EXPECT_EQ(vector.read(), sums(kMany)) << flags;
    }
}

// Messages need no memory of peers.
TEST_F(DeviceCallTest, UnsharedMemoryOfThePeerChangesNothingWhereNoneIsMapped)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    answer(kDeviceMemory | kNoMapping, kDeviceMemory | kNoMapping);
    EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), whole_call());
    EXPECT_EQ(vector.read(), sums(kMany));
}

TEST_F(DeviceCallTest, APeerThatMustStageOrDoesNotKnowTheOpMakesAllStage)
{
    for (const Flags flags : {kMustStage, kUnknownOp}) {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        previous_.output = sums(kMany);
        peer_.answer({says(kDeviceMemory | flags), says(kDeviceMemory | flags)});
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS) << flags;
        EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory), says(kDeviceMemory)})) << flags;
        EXPECT_EQ(previous_.said, 2u);
        EXPECT_EQ(previous_.input, mine(kMany));
        EXPECT_EQ(vector.read(), sums(kMany));
    }
    EXPECT_EQ(previous_.calls, 2);
    EXPECT_EQ(counter(HETCOLL_STAGED_OTHER_RANK), 2u);
}

TEST_F(DeviceCallTest, ARankThatCannotFindItsBuffersSaysSoInTheOpening)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory)});
    {
        const Faults faults("cuPointerGetAttributes:*:999,cuPointerGetAttribute:*:999");
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(), (Said{says(kFailed)}));
}

TEST_F(DeviceCallTest, ARankWhoseScheduleFailsServesItsPeerAndSaysSoInTheClosing)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    answer(kDeviceMemory, kDeviceMemory);
    {
        const Faults faults("cuMemcpyAsync:*:999,cuLaunchKernel:*:999");
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
    }
    ASSERT_EQ(peer_.said().size(), 3u);
    EXPECT_EQ(peer_.said()[0], says(kDeviceMemory));
    EXPECT_EQ(peer_.said()[1].size(), kMany * sizeof(int));
    EXPECT_EQ(peer_.said()[2], says(kDeviceMemory | kFailed));
    EXPECT_TRUE(peer_.is_over());
}

TEST_F(DeviceCallTest, ALostMessageEndsTheCallAtOnce)
{
    const Message opening = says(kDeviceMemory), vector_of_peer = data_of(theirs(kMany));
    const ScriptedPeer::Answer lost(kNetworkCode);
    const std::vector<std::vector<ScriptedPeer::Answer>> scripts = {
        {lost}, {opening, lost}, {opening, vector_of_peer, lost}};
    for (const auto &script : scripts) {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer(script);
        EXPECT_EQ(run(call(vector, vector, kMany)), kNetworkCode);
        EXPECT_LE(peer_.said().size(), script.size()); // the vector may not have been read yet
        make_comm();
        find_peers();
    }
}

// At which meeting is the peer? So nothing is said to it any more.
TEST_F(DeviceCallTest, AfterALostMessageFurtherCallsFailWithoutAWordToOthers)
{
    Numbers<int> vector(Where::kDevice, mine(kMany)), host(Where::kHost, mine(kMany));
    peer_.answer({ScriptedPeer::Answer(kNetworkCode)});
    ASSERT_EQ(run(call(vector, vector, kMany)), kNetworkCode);
    answer(kDeviceMemory, kDeviceMemory);
    for (const std::size_t count : {kFew, kMany}) {
        EXPECT_EQ(run(call(vector, vector, count)), kNetworkCode);
        EXPECT_EQ(run(call(host, host, count)), kNetworkCode);
        hetcoll_call broadcast = call(vector, vector, count);
        broadcast.collective = HETCOLL_BCAST;
        EXPECT_EQ(run(broadcast), kNetworkCode);
        const hetcoll_call again = call(vector, vector, count);
        Operation persistent(*comm_, again, Start::kPersistent);
        for (int start = 0; start < 2; ++start) {
            EXPECT_EQ(finish(persistent), kNetworkCode);
            persistent.rewind();
        }
    }
    EXPECT_TRUE(peer_.said().empty());
    EXPECT_EQ(vector.read(), mine(kMany));
    EXPECT_EQ(host.read(), mine(kMany));
}

TEST_F(LargeCallTest, RecordsThatAreLostEndTheCallAtOnce)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory), ScriptedPeer::Answer(kNetworkCode)});
    EXPECT_EQ(run(call(vector, vector, kMany)), kNetworkCode);
    EXPECT_EQ(peer_.said().size(), 2u);
}

} // namespace
} // namespace hetcoll::test
