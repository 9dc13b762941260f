// Facts that ranks tell each other when they close a call, besides its result: its time while a
// chunk is being looked for, their waits while a late rank is.
#include "test/unit/engine_scripted_peer.h"

#include "choice/arrivals.h"

namespace hetcoll::test {
namespace {

using Numbers64 = std::vector<std::uint64_t>;

// Longer than any call of this rank.
constexpr std::uint64_t kAges = 1'000'000'000'000'000;

class ClosingTest : public CallTest {
protected:
    explicit ClosingTest(const hetcoll_settings &settings) : CallTest(settings) {}

    // A call on device memory that closes with this of rank 1; what rank 0 has said there.
    Message closing(const Message &theirs, int result = HETCOLL_SUCCESS)
    {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer({says(kDeviceMemory), data_of(ClosingTest::theirs(kMany)), theirs});
        EXPECT_EQ(run(call(vector, vector, kMany)), result);
        EXPECT_EQ(peer_.said().size(), 3u);
        EXPECT_TRUE(peer_.is_over());
        if (result == HETCOLL_SUCCESS) {
            EXPECT_EQ(vector.read(), sums(kMany));
        }
        return peer_.said().back();
    }
    static Numbers64 numbers_of(const Message &message)
    {
        Numbers64 numbers((message.size() - Exchange::kFlagBytes) / sizeof(std::uint64_t));
        std::memcpy(numbers.data(), message.data(), numbers.size() * sizeof(std::uint64_t));
        return numbers;
    }
};

// ---- coll_hetcoll_adapt_chunk ----

hetcoll_settings adapting(hetcoll_settings settings)
{
    settings.adapt_chunk = true;
    settings.chunk_bytes = 0;
    return settings;
}

class TunedCallTest : public ClosingTest {
protected:
    TunedCallTest() : ClosingTest(adapting(usual_settings())) {}

    // As CallTest's, whose closing has a time too.
    void find_peers()
    {
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer({says(kDeviceMemory), records_of_peer(), prices_of_peer(), says(kDeviceMemory),
                      data_of(theirs(kMany)), took(kAges)});
        ASSERT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    }
    static Message took(std::uint64_t ns, Flags flags = kDeviceMemory)
    {
        return sum_of(Numbers64{ns}, flags);
    }
};

TEST_F(TunedCallTest, TheClosingHasThisRanksTime)
{
    find_peers();
    const Message said = closing(took(0));
    ASSERT_EQ(numbers_of(said).size(), 1u);
    EXPECT_GT(numbers_of(said)[0], 0u);
    EXPECT_LT(numbers_of(said)[0], kAges);
    EXPECT_EQ(flags_of(said), kDeviceMemory);
}

// All ranks stop with the same call, because all take the time of the slowest.
TEST_F(TunedCallTest, TheSlowestRanksTimesDecideHowLongAChunkIsLookedFor)
{
    ChunkTuner alike(0, 64u << 10, 16u << 20);
    int calls = 1; // with the first one
    for (alike.feed(kAges); !alike.frozen(); ++calls) {
        alike.feed(kAges);
    }
    find_peers();
    for (int call = 1; call < calls; ++call) {
        ASSERT_EQ(numbers_of(closing(took(kAges))).size(), 1u) << call;
    }
    for (int call = 0; call < 2; ++call) {
        EXPECT_EQ(closing(says(kDeviceMemory)), says(kDeviceMemory));
    }
}

TEST_F(TunedCallTest, AFailureThatComesWithATimeIsTheResult)
{
    find_peers();
    closing(took(0, kDeviceMemory | kFailed), HETCOLL_ERROR_DEVICE);
    EXPECT_FALSE(comm_->planner().peers().known());
}

TEST_F(TunedCallTest, AFailureOfThisRankGoesWithItsTime)
{
    find_peers();
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory), data_of(theirs(kMany)), took(0)});
    {
        const Faults faults("cuMemcpyAsync:*:999,cuLaunchKernel:*:999");
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
    }
    ASSERT_EQ(peer_.said().size(), 3u);
    EXPECT_EQ(numbers_of(peer_.said()[2]).size(), 1u);
    EXPECT_EQ(flags_of(peer_.said()[2]), kDeviceMemory | kFailed);
}

TEST_F(TunedCallTest, ALostClosingEndsTheCall)
{
    find_peers();
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory), data_of(theirs(kMany)), ScriptedPeer::Answer(kNetworkCode)});
    EXPECT_EQ(run(call(vector, vector, kMany)), kNetworkCode);
}

TEST_F(TunedCallTest, AScheduleOnHostMemoryTakesNoTime)
{
    Numbers<int> vector(Where::kHost, mine(kMany));
    hetcoll_call made = call(vector, vector, kMany);
    made.previous_allreduce = nullptr;
    peer_.answer({says(kHostMemory), says(kHostMemory), data_of(theirs(kMany)), says(kHostMemory)});
    EXPECT_EQ(run(made), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said().back(), says(kHostMemory));
}

TEST_F(TunedCallTest, OtherCollectivesTakeNoTime)
{
    find_peers();
    Numbers<int> vector(Where::kDevice, mine(kMany));
    hetcoll_call broadcast = call(vector, vector, kMany);
    broadcast.collective = HETCOLL_BCAST;
    peer_.answer({says(kDeviceMemory), says(kDeviceMemory)});
    EXPECT_EQ(run(broadcast), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said().back(), says(kDeviceMemory));
}

// ---- coll_hetcoll_skew ----

class SkewCallTest : public ClosingTest {
protected:
    static constexpr int kPeriod = Arrivals::kPeriod;

    static hetcoll_settings skewed()
    {
        hetcoll_settings settings = usual_settings();
        settings.skew = true;
        return settings;
    }
    explicit SkewCallTest(const hetcoll_settings &settings = skewed()) : ClosingTest(settings) {}

    // Large calls until the next one ends with an exchange. With the first one, in which peers are
    // found.
    void come_close()
    {
        find_peers();
        for (int call = 1; call < kPeriod - 1; ++call) {
            ASSERT_EQ(closing(says(kDeviceMemory)), says(kDeviceMemory)) << call;
        }
    }
    // The least and the longest wait of both ranks.
    static Message waited(const Numbers64 &rank0, const Numbers64 &rank1,
                          Flags flags = kDeviceMemory)
    {
        return sum_of(Numbers64{0, rank0[0], rank0[1], rank1[0], rank1[1]}, flags);
    }
};

TEST_F(SkewCallTest, EveryEighthClosingHasTheWaitsOfThisRankInItsPlace)
{
    come_close();
    for (int turn = 0; turn < 2; ++turn) {
        const Numbers64 said = numbers_of(closing(waited({0, 0}, {0, 0})));
        ASSERT_EQ(said.size(), 1 + 2 * Arrivals::kNumbersOfARank);
        EXPECT_EQ(said[0], 0u); // nobody looks for a chunk
        EXPECT_LE(said[1], said[2]);
        EXPECT_GT(said[2], 0u);
        EXPECT_EQ(said[3], 0u);
        EXPECT_EQ(said[4], 0u);
        for (int call = 1; turn == 0 && call < kPeriod; ++call) {
            ASSERT_EQ(closing(says(kDeviceMemory)), says(kDeviceMemory)) << call;
        }
    }
}

TEST_F(SkewCallTest, TheRankThatWaitsLeastIsTheLateOne)
{
    come_close();
    closing(waited({kAges, kAges}, {5, 5}));
    EXPECT_EQ(counter(HETCOLL_LATE_RANK), 2u); // rank 1
    for (int call = 1; call < kPeriod; ++call) {
        closing(says(kDeviceMemory));
    }
    closing(waited({0, 0}, {kAges, kAges}));
    EXPECT_EQ(counter(HETCOLL_LATE_RANK), 1u); // rank 0
    EXPECT_GT(counter(HETCOLL_ARRIVAL_WAIT), 0u);
}

TEST_F(SkewCallTest, NobodyIsLateWhoWaitsAsLongAsTheOthers)
{
    come_close();
    closing(waited({kAges, kAges}, {kAges, kAges}));
    EXPECT_EQ(counter(HETCOLL_LATE_RANK), 0u);
}

TEST_F(SkewCallTest, SmallCallsAndOtherCollectivesDoNotCount)
{
    come_close();
    Numbers<int> few(Where::kDevice, mine(kFew)), vector(Where::kDevice, mine(kMany));
    peer_.answer({sum_of(theirs(kFew), kDeviceMemory)});
    EXPECT_EQ(run(call(few, few, kFew)), HETCOLL_SUCCESS);
    hetcoll_call broadcast = call(vector, vector, kMany);
    broadcast.collective = HETCOLL_BCAST;
    peer_.answer({says(kDeviceMemory), says(kDeviceMemory)});
    EXPECT_EQ(run(broadcast), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said().back(), says(kDeviceMemory));
    EXPECT_EQ(numbers_of(closing(waited({0, 0}, {0, 0}))).size(), 5u);
}

TEST_F(SkewCallTest, AFailureThatComesWithTheWaitsIsTheResult)
{
    come_close();
    closing(waited({kAges, kAges}, {5, 5}, kDeviceMemory | kFailed), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(counter(HETCOLL_LATE_RANK), 2u); // all the same: all ranks have heard it
    EXPECT_FALSE(comm_->planner().peers().known());
}

class TunedSkewCallTest : public SkewCallTest {
protected:
    TunedSkewCallTest() : SkewCallTest(adapting(skewed())) {}
};

TEST_F(TunedSkewCallTest, AClosingMayHaveTheTimeAndTheWaits)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    const Message time = sum_of(Numbers64{kAges}, kDeviceMemory);
    peer_.answer({says(kDeviceMemory), records_of_peer(), prices_of_peer(), says(kDeviceMemory),
                  data_of(theirs(kMany)), time});
    ASSERT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    for (int call = 1; call < kPeriod - 1; ++call) {
        ASSERT_EQ(numbers_of(closing(time)).size(), 1u) << call;
    }
    const Numbers64 said = numbers_of(closing(waited({kAges, kAges}, {5, 5})));
    ASSERT_EQ(said.size(), 5u);
    EXPECT_GT(said[0], 0u);
    EXPECT_GT(said[2], 0u);
    EXPECT_EQ(counter(HETCOLL_LATE_RANK), 2u);
}

class OrderedSkewCallTest : public ClosingTest {
protected:
    static hetcoll_settings reproducible()
    {
        hetcoll_settings settings = usual_settings();
        settings.skew = settings.adapt_chunk = settings.reproducible = true;
        settings.chunk_bytes = 0;
        return settings;
    }
    OrderedSkewCallTest() : ClosingTest(reproducible()) {}
};

TEST_F(OrderedSkewCallTest, ReproducibleSumsCloseWithoutEither)
{
    find_peers();
    for (int call = 1; call <= Arrivals::kPeriod; ++call) {
        EXPECT_EQ(closing(says(kDeviceMemory)), says(kDeviceMemory)) << call;
    }
}

} // namespace
} // namespace hetcoll::test
