// Calls that are copied to the host and reduced there: by the previous module, or where that cannot
// be called by a schedule of ours.
#include "test/unit/engine_communicators.h"
#include "test/unit/engine_scripted_peer.h"

#include <algorithm>

namespace hetcoll::test {
namespace {

using Said = std::vector<Message>;

class StagedCallTest : public CallTest {
protected:
    // On a type that hetcoll does not reduce.
    hetcoll_call staged_call(Numbers<int> &send, Numbers<int> &recv)
    {
        hetcoll_call made = call(send, recv, kMany);
        made.kind = -1;
        made.reason = HETCOLL_REASON_TYPE;
        previous_.output = sums(kMany);
        return made;
    }
};

TEST_F(StagedCallTest, BuffersAreCopiedReducedByThePreviousModuleAndCopiedBack)
{
    Numbers<int> send(Where::kDevice, mine(kMany)), recv(Where::kDevice, theirs(kMany));
    peer_.answer({says(kDeviceMemory)});
    EXPECT_EQ(run(staged_call(send, recv)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory)}));
    EXPECT_EQ(previous_.calls, 1);
    EXPECT_EQ(previous_.said, 1u);
    EXPECT_EQ(previous_.input, mine(kMany));
    EXPECT_NE(previous_.send, previous_.recv);
    EXPECT_EQ(recv.read(), sums(kMany));
    EXPECT_EQ(send.read(), mine(kMany));
    EXPECT_EQ(counter(HETCOLL_CALLS_STAGED), 1u);
    EXPECT_EQ(counter(HETCOLL_STAGED_TYPE), 1u);
}

TEST_F(StagedCallTest, InPlaceThePreviousModuleIsCalledInPlace)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory)});
    EXPECT_EQ(run(staged_call(vector, vector)), HETCOLL_SUCCESS);
    EXPECT_EQ(previous_.send, previous_.recv);
    EXPECT_EQ(previous_.input, mine(kMany));
    EXPECT_EQ(vector.read(), sums(kMany));
}

TEST(KernelsTest, WhereTheyCannotBeLoadedEachRankSaysSoOnceAndCallsAreStaged)
{
    constexpr std::size_t kCount = 10000;
    const Faults faults("cuModuleLoadData:*:222");
    const CallCount loads("cuModuleLoadData");
    Communicators ranks(2, default_settings());
    Numbers<int> first(Where::kDevice, std::vector<int>(kCount, 1)),
        second(Where::kDevice, std::vector<int>(kCount, 2));
    take_log();
    for (int call = 0; call < 3; ++call) {
        for (int rank = 0; rank < 2; ++rank) {
            ranks.previous(rank).output = std::vector<int>(kCount, 3);
            ranks.call(rank, rank == 0 ? first : second, kCount);
        }
        ASSERT_TRUE(ranks.run());
        EXPECT_EQ(first.read(), std::vector<int>(kCount, 3));
    }
    EXPECT_EQ(ranks.counter(0, HETCOLL_CALLS_STAGED), 3u);
    EXPECT_EQ(loads.get(), 2u);
    const auto log = take_log();
    EXPECT_EQ(std::count_if(log.begin(), log.end(),
                            [](const std::string &line) {
                                return line.rfind("0 hetcoll: a rank cannot use its GPU, so calls "
                                                  "above the small limit are staged",
                                                  0) == 0 &&
                                       line.find("newer driver") != std::string::npos;
                            }),
              2);
}

TEST_F(StagedCallTest, HostMemoryIsThePreviousModulesAsItIs)
{
    Numbers<int> send(Where::kHost, mine(kMany)), recv(Where::kHost, theirs(kMany));
    peer_.answer({says(kDeviceMemory)});
    EXPECT_EQ(run(staged_call(send, recv)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), (Said{says(kHostMemory)}));
    EXPECT_EQ(previous_.send, send.data());
    EXPECT_EQ(previous_.recv, recv.data());
    EXPECT_EQ(counter(HETCOLL_CALLS_PREVIOUS), 1u);
}

TEST_F(StagedCallTest, ThePreviousModulesErrorIsHandedOnAndNothingCopiedBack)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    const hetcoll_call made = staged_call(vector, vector);
    previous_.code = -5;
    peer_.answer({says(kDeviceMemory)});
    EXPECT_EQ(run(made), -5);
    EXPECT_EQ(vector.read(), mine(kMany));
}

TEST_F(StagedCallTest, APeerThatCouldNotCopyKeepsAllFromThePreviousModule)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory | kFailed)});
    EXPECT_EQ(run(staged_call(vector, vector)), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory)}));
    EXPECT_EQ(previous_.calls, 0);
    EXPECT_EQ(vector.read(), mine(kMany));
}

TEST_F(StagedCallTest, ARankThatCannotCopySaysSo)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory)});
    {
        const Faults faults("cuMemcpyAsync:*:999,cuMemcpy:*:999");
        EXPECT_EQ(run(staged_call(vector, vector)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory | kFailed)}));
    EXPECT_EQ(previous_.calls, 0);
}

TEST_F(StagedCallTest, ARankThatCannotUseItsGpuSaysSoAndCopiesAllTheSame)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    previous_.output = sums(kMany);
    peer_.answer({says(kDeviceMemory), says(kDeviceMemory)});
    {
        const Faults faults("cuStreamCreateWithPriority:*:999");
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    }
    EXPECT_EQ(peer_.said(), Said(2, says(kDeviceMemory | kMustStage)));
    EXPECT_EQ(previous_.input, mine(kMany));
    EXPECT_EQ(vector.read(), sums(kMany));
    EXPECT_EQ(counter(HETCOLL_STAGED_GPU), 1u);
}

// The bounce is lost with the network: a message may still arrive there. The protocol's loans
// are not lost.
TEST_F(StagedCallTest, ALostAgreementEndsTheCallAndGivesItsMemoryBack)
{
    Numbers<int> few(Where::kDevice, mine(kFew)), vector(Where::kDevice, mine(kMany));
    peer_.answer({sum_of(theirs(kFew), kDeviceMemory)});
    ASSERT_EQ(run(call(few, few, kFew)), HETCOLL_SUCCESS);
    const auto bounce = counter(HETCOLL_ALLOCATIONS);

    peer_.answer({ScriptedPeer::Answer(kNetworkCode)});
    EXPECT_EQ(run(staged_call(vector, vector)), kNetworkCode);
    EXPECT_EQ(previous_.calls, 0);
    const auto both = counter(HETCOLL_ALLOCATIONS);
    EXPECT_EQ(both, bounce + 1);

    make_comm();
    peer_.answer({says(kDeviceMemory)});
    EXPECT_EQ(run(staged_call(vector, vector)), HETCOLL_SUCCESS);
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), both + bounce);
}

// ---- by a schedule on the host ----

class UserOpTest : public CallTest {
protected:
    static constexpr std::size_t kHalves = 2 * kMany;

    // A nonblocking call. The numbers are small, so sums of halves are sums.
    hetcoll_call user_call(Numbers<int> &vector, bool known)
    {
        hetcoll_call made = call(vector, vector, kMany);
        made.count = kHalves;
        made.kind = known ? static_cast<int>(HETCOLL_UINT16) : -1;
        made.user_op = 2;
        made.reason = HETCOLL_REASON_USER_OP;
        made.previous_allreduce = nullptr;
        made.reduce = [](void *context, const void *in, void *inout, std::size_t count) {
            ++static_cast<PreviousModule *>(context)->calls;
            const auto *const from = static_cast<const std::uint16_t *>(in);
            auto *const to = static_cast<std::uint16_t *>(inout);
            for (std::size_t i = 0; i < count; ++i) {
                to[i] = static_cast<std::uint16_t>(to[i] + from[i]);
            }
        };
        return made;
    }
};

TEST_F(UserOpTest, WhereARankDoesNotKnowItTheHostReducesByTheFunctionItself)
{
    for (const bool known : {false, true}) {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        const Flags here = kDeviceMemory | flags_if(!known, kUnknownOp);
        const Flags there = kDeviceMemory | flags_if(known, kUnknownOp);
        previous_.calls = 0;
        peer_.answer({says(there), says(there), data_of(theirs(kMany)), says(there)});
        EXPECT_EQ(run(user_call(vector, known)), HETCOLL_SUCCESS);
        EXPECT_EQ(peer_.said(), (Said{says(here), says(here), data_of(mine(kMany)), says(here)}));
        EXPECT_EQ(previous_.calls, 1);
        EXPECT_EQ(vector.read(), sums(kMany));
    }
    EXPECT_EQ(counter(HETCOLL_STAGED_USER_OP), 1u);
    EXPECT_EQ(counter(HETCOLL_STAGED_OTHER_RANK), 1u);
}

TEST_F(UserOpTest, AFailureOfThePeerInTheClosingIsTheResult)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    const Flags here = kDeviceMemory | kUnknownOp;
    peer_.answer({says(here), says(here), data_of(theirs(kMany)), says(here | kFailed)});
    EXPECT_EQ(run(user_call(vector, false)), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said().size(), 4u);
    EXPECT_EQ(vector.read(), mine(kMany));
}

class OrderedCallTest : public CallTest {
protected:
    static hetcoll_settings reproducible()
    {
        hetcoll_settings settings = usual_settings();
        settings.algorithm = "auto";
        settings.reproducible = true;
        return settings;
    }
    OrderedCallTest() : CallTest(reproducible()) {}
};

// The last rank has the sum.
TEST_F(OrderedCallTest, HostMemoryIsSummedInTheOrderOfTheRanksAndNotByThePreviousModule)
{
    const std::vector<float> input(kMany, 1.0f), sum(kMany, 3.0f);
    Numbers<float> vector(Where::kHost, input);
    peer_.answer({says(kHostMemory), says(kHostMemory), data_of(sum), says(kHostMemory)});
    EXPECT_EQ(run(call(vector, vector, kMany, HETCOLL_FLOAT32)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(),
              (Said{says(kHostMemory), says(kHostMemory), data_of(input), says(kHostMemory)}));
    EXPECT_EQ(vector.read(), sum);
    EXPECT_EQ(previous_.calls, 0);
    EXPECT_EQ(counter(HETCOLL_CALLS_ORDERED), 1u);
}

} // namespace
} // namespace hetcoll::test
