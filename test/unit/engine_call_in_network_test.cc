// Calls that aggregators reduce: how the ranks join them, what they tell each other after every
// piece, and how a call goes on that has lost one.
#include "test/unit/engine_process.h"
#include "test/unit/engine_scripted_aggregator.h"

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace hetcoll::test {
namespace {

using Said = std::vector<Message>;
using Answer = ScriptedPeer::Answer;

constexpr std::uint64_t kNobody = ~std::uint64_t{0};

// A meeting that carries a number: the job's, or of the first rank that has lost its aggregator.
Message number(std::uint64_t value, Flags flags = {})
{
    return sum_of(std::vector<std::uint64_t>{value}, flags);
}

class InNetworkTest : public CallTest {
protected:
    static constexpr std::size_t kCopyBytes = 64u << 10, kPiece = kCopyBytes / sizeof(int);

    static hetcoll_settings with_aggregator()
    {
        static const std::string key =
            ::testing::TempDir() + "hetcoll_in_network_key." + std::to_string(getpid());
        std::ofstream(key) << "0123456789abcdef\n";
        chmod(key.c_str(), 0600);
        hetcoll_settings settings = usual_settings();
        settings.aggregators = "left:7001";
        settings.aggregator_key = key.c_str();
        settings.aggregator_window = 5;
        settings.aggregator_rdma = "any";
        settings.aggregator_copy = kCopyBytes;
        settings.algorithm = "in_network";
        settings.chunk_bytes = kCopyBytes;
        settings.verbose = 1;
        settings.log = default_settings().log;
        return settings;
    }
    InNetworkTest() : CallTest(with_aggregator()) { take_log(); }

    // The log, but for the lines that the GPU is emulated and how a call was served.
    static std::vector<std::string> lines_of_log()
    {
        std::vector<std::string> lines = take_log();
        std::erase_if(lines, [](const std::string &line) {
            return line.find("emulated GPU") != line.npos ||
                   line.find("ranks: allreduce of") != line.npos;
        });
        return lines;
    }
    static bool begins(const std::vector<std::string> &lines, const std::string &with)
    {
        return lines.size() == 1 && lines[0].rfind(with, 0) == 0;
    }
    [[nodiscard]] std::uint64_t calls_in_network() const
    {
        return counter(HETCOLL_CALLS_OF(Algorithm::kInNetwork));
    }
    ScriptedAggregator aggregator_;
};

// ---- joining ----

class JoinTest : public InNetworkTest {
protected:
    // A large call on host memory, which the previous module serves in the end.
    std::optional<int> call_after(std::vector<Answer> joining)
    {
        Numbers<int> vector(Where::kHost, mine(kMany));
        joining.emplace_back(says(kHostMemory));
        peer_.answer(std::move(joining));
        return run(call(vector, vector, kMany));
    }
    [[nodiscard]] Message said(std::size_t meeting) const { return peer_.said().at(meeting); }
    void expect_no_aggregators()
    {
        EXPECT_FALSE(comm_->planner().aggregation().joined());
        EXPECT_FALSE(comm_->planner().aggregation().is_untried());
        EXPECT_EQ(aggregator_.clients, 0);
        EXPECT_EQ(call_after({}), HETCOLL_SUCCESS); // nobody tries again
        EXPECT_EQ(peer_.said(), Said{says(kHostMemory)});
    }
};

TEST_F(JoinTest, AllRanksMeetConnectAndMeetBeforeTheFirstLargeCall)
{
    aggregator_.joining_steps = 3;
    EXPECT_EQ(call_after({number(0), number(kNobody)}), HETCOLL_SUCCESS);
    ASSERT_EQ(peer_.said().size(), 3u);
    EXPECT_EQ(flags_of(said(0)), Flags{});
    EXPECT_EQ(said(1), number(kNobody));
    EXPECT_EQ(said(2), says(kHostMemory));
    ASSERT_EQ(aggregator_.plans.size(), 1u);
    const AggregatorPlan &plan = aggregator_.plans[0];
    EXPECT_EQ(number(plan.job), said(0)); // rank 0 names the job
    EXPECT_EQ(plan.endpoint.text(), "left:7001");
    EXPECT_EQ(plan.rdma, "any");
    EXPECT_EQ(plan.key.secret, "0123456789abcdef");
    EXPECT_EQ(plan.rank, 0);
    EXPECT_EQ(plan.ranks, 2);
    EXPECT_EQ(plan.first, 0);
    EXPECT_EQ(plan.count, 2);
    EXPECT_EQ(plan.window, 5);
    EXPECT_TRUE(comm_->planner().aggregation().joined());
    EXPECT_TRUE(begins(lines_of_log(), "1 hetcoll: communicator of 2 ranks: connected to 1 "
                                       "aggregator, with a window of 4 messages"));
    EXPECT_EQ(call_after({}), HETCOLL_SUCCESS); // no more of that
    EXPECT_EQ(peer_.said(), Said{says(kHostMemory)});
}

TEST_F(JoinTest, SmallCallsDoNotJoin)
{
    Numbers<int> vector(Where::kHost, mine(kFew));
    peer_.answer({sum_of(theirs(kFew), kHostMemory)});
    EXPECT_EQ(run(call(vector, vector, kFew)), HETCOLL_SUCCESS);
    EXPECT_TRUE(comm_->planner().aggregation().is_untried());
    EXPECT_EQ(aggregator_.plans.size(), 0u);
}

TEST_F(JoinTest, WhereAPeerHasWaitedInVainBeforeNobodyConnects)
{
    EXPECT_EQ(call_after({number(0, kNoAggregator)}), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said().size(), 2u);
    EXPECT_EQ(aggregator_.plans.size(), 0u);
    EXPECT_FALSE(
        process_->aggregators().have_failed()); // of this process's aggregators nothing is known
    EXPECT_EQ(lines_of_log(), std::vector<std::string>{});
    expect_no_aggregators();
}

TEST_F(JoinTest, ARankThatHasWaitedInVainBeforeSaysSo)
{
    process_->aggregators().note_failed();
    EXPECT_EQ(call_after({number(0)}), HETCOLL_SUCCESS);
    EXPECT_EQ(flags_of(said(0)), kNoAggregator);
    EXPECT_EQ(aggregator_.plans.size(), 0u);
    expect_no_aggregators();
}

TEST_F(JoinTest, WhereAPeerCannotJoinNobodyUsesAggregatorsAndThatPeerSpeaks)
{
    EXPECT_EQ(call_after({number(0), number(1, kNoAggregator)}), HETCOLL_SUCCESS);
    EXPECT_EQ(said(1), number(kNobody));
    EXPECT_TRUE(process_->aggregators().have_failed());
    EXPECT_EQ(lines_of_log(), std::vector<std::string>{});
    expect_no_aggregators();
}

TEST_F(JoinTest, ARankThatCannotJoinSaysSoToAllAndWhyToTheUser)
{
    aggregator_.refuses = true;
    EXPECT_EQ(call_after({number(0), number(kNobody)}), HETCOLL_SUCCESS);
    EXPECT_EQ(said(1), number(0, kNoAggregator));
    EXPECT_TRUE(process_->aggregators().have_failed());
    const auto lines = lines_of_log();
    ASSERT_TRUE(begins(lines, "0 hetcoll: no aggregators on this communicator of 2 ranks"));
    EXPECT_NE(lines[0].find("the script lets nobody connect"), std::string::npos) << lines[0];
    expect_no_aggregators();
}

TEST_F(JoinTest, ARankWhoseConnectionFailsWhileItJoinsSaysSo)
{
    aggregator_.fails = true;
    EXPECT_EQ(call_after({number(0), number(1, kNoAggregator)}), HETCOLL_SUCCESS);
    EXPECT_EQ(said(1), number(0, kNoAggregator));
    const auto lines = lines_of_log(); // of two ranks that cannot join the first speaks
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find("the script has ended the connection"), std::string::npos) << lines[0];
    expect_no_aggregators();
}

TEST_F(JoinTest, ALostMeetingEndsTheCall)
{
    EXPECT_EQ(call_after({Answer(kNetworkCode)}), kNetworkCode);
    EXPECT_EQ(peer_.said().size(), 1u);
    EXPECT_EQ(aggregator_.plans.size(), 0u);
}

TEST_F(JoinTest, ALostSecondMeetingEndsTheCall)
{
    EXPECT_EQ(call_after({number(0), Answer(kNetworkCode)}), kNetworkCode);
    EXPECT_EQ(peer_.said().size(), 2u);
}

// ---- calls ----

class InNetworkCallTest : public InNetworkTest {
protected:
    void SetUp() override
    {
        InNetworkTest::SetUp();
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer({number(0), number(kNobody), says(kDeviceMemory), records_of_peer(),
                      prices_of_peer(), says(kDeviceMemory), closes(kNobody)});
        aggregator_.messages.answer({data_of(sums(kMany))});
        ASSERT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
        ASSERT_EQ(vector.read(), sums(kMany));
        ASSERT_EQ(calls_in_network(), 1u);
        aggregator_.begun.clear();
        lines_of_log();
    }
    // The closing of a piece.
    static Message closes(std::uint64_t lost, Flags flags = kDeviceMemory)
    {
        return number(lost, flags);
    }
    static Message loses(std::uint64_t rank, Flags flags = {})
    {
        return number(rank, kDeviceMemory | kNoAggregator | flags);
    }
    // In two buffers, or in place. The sum, if the call succeeds.
    std::vector<int> sum(bool in_place, int result = HETCOLL_SUCCESS)
    {
        Numbers<int> send(Where::kDevice, mine(kMany)), recv(Where::kDevice, theirs(kMany));
        EXPECT_EQ(run(call(in_place ? recv : send, recv, kMany)), result);
        EXPECT_TRUE(peer_.is_over());
        EXPECT_EQ(send.read(), mine(kMany));
        return recv.read();
    }
    // Calls go by messages, like those of a communicator that has none.
    void expect_no_aggregators()
    {
        EXPECT_FALSE(comm_->planner().aggregation().joined());
        EXPECT_EQ(aggregator_.clients, 0);
        Numbers<int> vector(Where::kDevice, mine(kMany));
        peer_.answer({says(kDeviceMemory), data_of(theirs(kMany)), says(kDeviceMemory)});
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
        EXPECT_EQ(peer_.said(),
                  (Said{says(kDeviceMemory), data_of(mine(kMany)), says(kDeviceMemory)}));
        EXPECT_EQ(vector.read(), sums(kMany));
    }
};

TEST_F(InNetworkCallTest, AVectorGoesToTheAggregatorAndTheRanksMeetAfterwards)
{
    peer_.answer({says(kDeviceMemory), closes(kNobody)});
    aggregator_.messages.answer({data_of(line(kMany, 3, 7))});
    EXPECT_EQ(sum(false), line(kMany, 3, 7));
    EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory), closes(kNobody)}));
    EXPECT_EQ(aggregator_.messages.said(), Said{data_of(mine(kMany))});
    EXPECT_EQ(aggregator_.begun, (std::vector<ScriptedAggregator::Begun>{
                                     {ReduceOp::kSum, ElementKind::kInt32, kMany}}));
    EXPECT_EQ(calls_in_network(), 2u);
}

TEST_F(InNetworkCallTest, ALargerVectorGoesPieceByPieceWithAMeetingAfterEach)
{
    const std::size_t count = 2 * kPiece + 10;
    Numbers<int> vector(Where::kDevice, mine(count));
    const std::vector<int> sum = sums(count);
    peer_.answer({says(kDeviceMemory), closes(kNobody), closes(kNobody), closes(kNobody)});
    aggregator_.messages.answer(
        {data_of(std::vector<int>(sum.begin(), sum.begin() + kPiece)),
         data_of(std::vector<int>(sum.begin() + kPiece, sum.begin() + 2 * kPiece)),
         data_of(std::vector<int>(sum.begin() + 2 * kPiece, sum.end()))});
    EXPECT_EQ(run(call(vector, vector, count)), HETCOLL_SUCCESS);
    EXPECT_EQ(vector.read(), sum);
    EXPECT_EQ(peer_.said(),
              (Said{says(kDeviceMemory), closes(kNobody), closes(kNobody), closes(kNobody)}));
    ASSERT_EQ(aggregator_.begun.size(), 3u);
    EXPECT_EQ(aggregator_.begun[0].count, kPiece);
    EXPECT_EQ(aggregator_.begun[2].count, 10u);
}

// ---- an aggregator is lost ----

// In place the aggregator's sums have overwritten the input, on a rank that did not lose its own.
class LostAggregatorTest : public InNetworkCallTest, public ::testing::WithParamInterface<bool> {
protected:
    [[nodiscard]] bool in_place() const { return GetParam(); }
    // Rank 0's contribution: its result buffer is filled with rank 1's numbers.
    [[nodiscard]] std::vector<int> input() const
    {
        return in_place() ? theirs(kMany) : mine(kMany);
    }
    [[nodiscard]] std::vector<int> input_of_peer() const
    {
        return in_place() ? mine(kMany) : theirs(kMany);
    }
    void expect_rest(const Message &said)
    {
        EXPECT_EQ(peer_.said(),
                  (Said{says(kDeviceMemory), said, data_of(input()), says(kDeviceMemory)}));
        EXPECT_EQ(calls_in_network(), 1u);
    }
};
INSTANTIATE_TEST_SUITE_P(Calls, LostAggregatorTest, ::testing::Bool(), [](const auto &param) {
    return param.param ? "InPlace" : "InTwoBuffers";
});

TEST_P(LostAggregatorTest, OnThisRankIsSaidThereAndTheRestGoesByMessages)
{
    peer_.answer(
        {says(kDeviceMemory), closes(kNobody), data_of(input_of_peer()), says(kDeviceMemory)});
    aggregator_.messages.answer({Answer(kAggregatorFailed)});
    EXPECT_EQ(sum(in_place()), sums(kMany));
    expect_rest(loses(0));
    const auto lines = lines_of_log();
    ASSERT_TRUE(begins(lines, "0 hetcoll: no aggregators on this communicator of 2 ranks"));
    EXPECT_NE(lines[0].find("the script has ended the connection"), std::string::npos) << lines[0];
    expect_no_aggregators();
}

TEST_P(LostAggregatorTest, OnAnotherRankThisOneGivesItsOwnUp)
{
    peer_.answer({says(kDeviceMemory), loses(1), data_of(input_of_peer()), says(kDeviceMemory)});
    aggregator_.messages.answer({data_of(line(kMany, 3, 7))}); // all for nothing
    EXPECT_EQ(sum(in_place()), sums(kMany));
    expect_rest(closes(kNobody));
    EXPECT_EQ(lines_of_log(), std::vector<std::string>{});
    expect_no_aggregators();
}

TEST_P(LostAggregatorTest, OnBothTheFirstOneSpeaks)
{
    peer_.answer({says(kDeviceMemory), loses(1), data_of(input_of_peer()), says(kDeviceMemory)});
    aggregator_.messages.answer({Answer(kAggregatorFailed)});
    EXPECT_EQ(sum(in_place()), sums(kMany));
    expect_rest(loses(0));
    EXPECT_EQ(lines_of_log().size(), 1u);
}

TEST_P(LostAggregatorTest, BetweenTwoCallsNothingIsSentToIt)
{
    aggregator_.fails = true;
    peer_.answer(
        {says(kDeviceMemory), closes(kNobody), data_of(input_of_peer()), says(kDeviceMemory)});
    aggregator_.messages.answer({});
    EXPECT_EQ(sum(in_place()), sums(kMany));
    expect_rest(loses(0));
    EXPECT_EQ(aggregator_.messages.said().size(), 0u);
    EXPECT_EQ(aggregator_.begun.size(), 0u);
}

TEST_P(LostAggregatorTest, AFailureInTheClosingOfTheRestIsTheResult)
{
    peer_.answer(
        {says(kDeviceMemory), loses(1), data_of(input_of_peer()), says(kDeviceMemory | kFailed)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    sum(in_place(), HETCOLL_ERROR_DEVICE);
    EXPECT_FALSE(comm_->planner().peers().known());
}

TEST_P(LostAggregatorTest, ALostMessageOfTheRestEndsTheCall)
{
    peer_.answer({says(kDeviceMemory), loses(1), Answer(kNetworkCode)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    sum(in_place(), kNetworkCode);
    EXPECT_FALSE(comm_->planner().aggregation().joined());
}

TEST_F(InNetworkCallTest, AnAggregatorLostInALaterPieceLeavesWhatAllHave)
{
    const std::size_t count = kPiece + kMany;
    Numbers<int> vector(Where::kDevice, mine(count));
    std::vector<int> expected = line(count, 3, 7); // as the aggregator says
    const std::vector<int> all_theirs = theirs(count), all_sums = sums(count);
    std::copy(all_sums.begin() + kPiece, all_sums.end(), expected.begin() + kPiece);
    peer_.answer({says(kDeviceMemory), closes(kNobody), closes(kNobody),
                  data_of(std::vector<int>(all_theirs.begin() + kPiece, all_theirs.end())),
                  says(kDeviceMemory)});
    aggregator_.messages.answer({data_of(line(kPiece, 3, 7)), Answer(kAggregatorFailed)});
    EXPECT_EQ(run(call(vector, vector, count)), HETCOLL_SUCCESS);
    ASSERT_EQ(peer_.said().size(), 5u);
    EXPECT_EQ(peer_.said()[1], closes(kNobody));
    EXPECT_EQ(peer_.said()[2], loses(0));
    EXPECT_EQ(peer_.said()[3].size(), kMany * sizeof(int));
    EXPECT_EQ(vector.read(), expected);
}

// ---- failures ----

TEST_F(InNetworkCallTest, OfWhatThePeerSaysInTheClosingOnlyAFailureAndALossCount)
{
    for (const Flags flags : {kMustStage, kNewBuffers, kUnknownOp, kOutOfRange, kNoMapping}) {
        peer_.answer({says(kDeviceMemory), closes(kNobody, kDeviceMemory | flags)});
        aggregator_.messages.answer({data_of(sums(kMany))});
        EXPECT_EQ(sum(false), sums(kMany)) << flags;
        EXPECT_TRUE(comm_->planner().aggregation().joined()) << flags;
    }
}

TEST_F(InNetworkCallTest, AFailureOfThePeerIsTheResultAndTheAggregatorsStay)
{
    peer_.answer({says(kDeviceMemory), closes(kNobody, kDeviceMemory | kFailed)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    sum(true, HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said().size(), 2u);
    EXPECT_TRUE(comm_->planner().aggregation().joined());
    EXPECT_FALSE(comm_->planner().peers().known());
}

TEST_F(InNetworkCallTest, AFailureAndALossAreAFailureWithoutTheRest)
{
    peer_.answer({says(kDeviceMemory), loses(1, kFailed)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    sum(true, HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said().size(), 2u);
    EXPECT_FALSE(comm_->planner().aggregation().joined());
    EXPECT_EQ(aggregator_.clients, 0);
}

TEST_F(InNetworkCallTest, ARankWhoseCopiesFailServesTheAggregatorAndSaysSo)
{
    peer_.answer({says(kDeviceMemory), closes(kNobody)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    {
        const Faults faults("cuMemcpyAsync:*:999,cuLaunchKernel:*:999");
        Numbers<int> vector(Where::kDevice, mine(kMany));
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory), closes(kNobody, kDeviceMemory | kFailed)}));
    ASSERT_EQ(aggregator_.messages.said().size(), 1u); // other ranks wait for the sum
    EXPECT_EQ(aggregator_.messages.said()[0].size(), kMany * sizeof(int));
    EXPECT_TRUE(aggregator_.messages.is_over());
}

TEST_F(InNetworkCallTest, ARankThatCannotKeepItsInputServesTheAggregatorWithoutItsGpu)
{
    Numbers<int> vector(Where::kDevice, mine(kMany));
    peer_.answer({says(kDeviceMemory), closes(kNobody)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    {
        const Faults faults("cuMemcpyAsync:1:999,cuMemcpy:1:999");
        const CallCount copies("cuMemcpyAsync"), kernels("cuLaunchKernel");
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
        EXPECT_EQ(copies.get(), 1u);
        EXPECT_EQ(kernels.get(), 0u);
    }
    EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory), closes(kNobody, kDeviceMemory | kFailed)}));
    EXPECT_EQ(aggregator_.messages.said().size(), 1u);
    EXPECT_EQ(vector.read(), mine(kMany));
}

TEST_F(InNetworkCallTest, ARankWhoseCopiesFailAndThatLosesItsAggregatorSaysBoth)
{
    peer_.answer({says(kDeviceMemory), closes(kNobody)});
    aggregator_.messages.answer({Answer(kAggregatorFailed)});
    {
        const Faults faults("cuMemcpyAsync:*:999,cuLaunchKernel:*:999");
        Numbers<int> vector(Where::kDevice, mine(kMany));
        EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_ERROR_DEVICE);
    }
    EXPECT_EQ(peer_.said(), (Said{says(kDeviceMemory), loses(0, kFailed)}));
    EXPECT_FALSE(comm_->planner().aggregation().joined());
}

TEST_F(InNetworkCallTest, ALostClosingEndsTheCallAtOnce)
{
    peer_.answer({says(kDeviceMemory), Answer(kNetworkCode)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    sum(true, kNetworkCode);
    EXPECT_EQ(peer_.said().size(), 2u);
}

// ---- no memory to keep an input ----

TEST_P(LostAggregatorTest, WhereAnotherRanksInputIsGoneAllFailWithoutTheRest)
{
    peer_.answer({says(kDeviceMemory), loses(1, kInputGone)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    sum(in_place(), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(peer_.said().size(), 2u);
    EXPECT_FALSE(comm_->planner().aggregation().joined());
}

TEST_P(LostAggregatorTest, AnInputThatIsGoneChangesNothingWhereNoneIsLost)
{
    peer_.answer({says(kDeviceMemory), closes(kNobody, kDeviceMemory | kInputGone)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    EXPECT_EQ(sum(in_place()), sums(kMany));
    EXPECT_TRUE(comm_->planner().aggregation().joined());
}

class NoMemoryTest : public InNetworkTest {
protected:
    // The first call in place takes the memory, so there is none before.
    std::optional<int> first_call(bool in_place, const Answer &sum, std::vector<Answer> closing)
    {
        Numbers<int> send(Where::kDevice, mine(kMany)), recv(Where::kDevice, mine(kMany));
        std::vector<Answer> script = {number(0),         number(kNobody),  says(kDeviceMemory),
                                      records_of_peer(), prices_of_peer(), says(kDeviceMemory)};
        script.insert(script.end(), closing.begin(), closing.end());
        peer_.answer(std::move(script));
        aggregator_.messages.answer({sum});
        const Faults faults("cuMemAlloc:*:2");
        const auto result = run(call(in_place ? recv : send, recv, kMany));
        if (result == HETCOLL_SUCCESS) {
            EXPECT_EQ(recv.read(), sums(kMany));
        }
        return result;
    }
    // After the meetings that join, agree, find peers and price.
    [[nodiscard]] Message closing() const { return peer_.said().at(6); }
};

TEST_F(NoMemoryTest, ACallInPlaceGoesOnWithout)
{
    EXPECT_EQ(first_call(true, data_of(sums(kMany)), {number(kNobody, kDeviceMemory)}),
              HETCOLL_SUCCESS);
    EXPECT_EQ(closing(), number(kNobody, kDeviceMemory | kInputGone));
}

// This rank's input is a sum by now. As its input that would make a wrong one on all ranks.
TEST_F(NoMemoryTest, ACallInPlaceFailsOnAllRanksIfAnotherRankLosesItsAggregator)
{
    EXPECT_EQ(first_call(true, data_of(sums(kMany)), {number(1, kDeviceMemory | kNoAggregator)}),
              HETCOLL_ERROR_NO_MEMORY);
    EXPECT_EQ(peer_.said().size(), 7u);
    EXPECT_EQ(closing(), number(kNobody, kDeviceMemory | kInputGone));
}

TEST_F(NoMemoryTest, ACallInPlaceThatLosesItsAggregatorFailsOnAllRanks)
{
    EXPECT_EQ(first_call(true, Answer(kAggregatorFailed), {number(kNobody, kDeviceMemory)}),
              HETCOLL_ERROR_NO_MEMORY);
    EXPECT_EQ(closing(), number(0, kDeviceMemory | kNoAggregator | kInputGone));
}

TEST_F(NoMemoryTest, ACallWithTwoBuffersNeedsNone)
{
    EXPECT_EQ(
        first_call(false, Answer(kAggregatorFailed),
                   {number(kNobody, kDeviceMemory), data_of(theirs(kMany)), says(kDeviceMemory)}),
        HETCOLL_SUCCESS);
    EXPECT_EQ(closing(), number(0, kDeviceMemory | kNoAggregator));
}

// ---- host memory here, device memory there ----

class MixedInNetworkTest : public InNetworkCallTest {};

TEST_F(MixedInNetworkTest, TheHostsVectorGoesToTheAggregator)
{
    Numbers<int> vector(Where::kHost, mine(kMany));
    peer_.answer({says(kDeviceMemory), says(kDeviceMemory), closes(kNobody)});
    aggregator_.messages.answer({data_of(sums(kMany))});
    EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(),
              (Said{says(kHostMemory), says(kHostMemory), number(kNobody, kHostMemory)}));
    EXPECT_EQ(aggregator_.messages.said(), Said{data_of(mine(kMany))});
    EXPECT_EQ(vector.read(), sums(kMany));
}

TEST_F(MixedInNetworkTest, TheHostsInputIsKeptForTheLossOfAnAggregator)
{
    Numbers<int> vector(Where::kHost, mine(kMany));
    peer_.answer({says(kDeviceMemory), says(kDeviceMemory), loses(1), data_of(theirs(kMany)),
                  says(kDeviceMemory)});
    aggregator_.messages.answer({data_of(line(kMany, 3, 7))});
    EXPECT_EQ(run(call(vector, vector, kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(),
              (Said{says(kHostMemory), says(kHostMemory), number(kNobody, kHostMemory),
                    data_of(mine(kMany)), says(kHostMemory)}));
    EXPECT_EQ(vector.read(), sums(kMany));
}

} // namespace
} // namespace hetcoll::test
