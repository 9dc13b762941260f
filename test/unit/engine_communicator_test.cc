// A communicator: what it says when its ranks differ, and its shortest call.
#include "engine/call/host_calls.h"
#include "engine/communicator/communicator.h"

#include "engine_process.h"
#include "engine_scripted_peer.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr int kTag = HETCOLL_TAGS;

// Two ranks on two nodes, or on one. The other one is a script.
class CommunicatorTest : public ::testing::Test {
protected:
    enum class On { kTwoNodes, kOneNode };

    explicit CommunicatorTest(const hetcoll_settings &settings = default_settings())
        : process_(make_process(settings)), agreed_(process_->facts())
    {
        take_log();
    }

    std::unique_ptr<Communicator> make(On nodes, int rank = 0, int ranks = 2)
    {
        std::array<hetcoll_facts, 2> facts = {agreed_, agreed_};
        if (nodes == On::kTwoNodes) {
            ++facts[1 - rank].identity.host;
            ++facts[1 - rank].identity.machine;
        }
        hetcoll_p2p table = peer_.table();
        table.rank = rank;
        table.size = ranks;
        return std::make_unique<Communicator>(
            *process_, table, agreed_, std::span(facts).first(static_cast<std::size_t>(ranks)));
    }
    // The other rank's settings that a program may change.
    static Message sets(std::uint64_t settings, Flags flags = {})
    {
        return sum_of(std::vector<std::uint64_t>{settings, ~settings}, flags);
    }
    [[nodiscard]] std::uint64_t our_settings() const
    {
        return agreed_.algorithm << 32 | agreed_.chunk_bytes;
    }
    // On one node: what it says of the page, in an exchange of that size.
    static Message no_ticket(Flags flags)
    {
        Message message(sizeof(SharedPageTicket));
        for (const std::uint8_t byte : says(flags)) {
            message.push_back(byte);
        }
        return message;
    }
    void make_ready(Communicator &comm, std::vector<ScriptedPeer::Answer> script)
    {
        peer_.answer(std::move(script));
        ASSERT_EQ(comm.make_ready(kTag), Progress::kDone);
        EXPECT_TRUE(comm.is_ready());
        EXPECT_TRUE(peer_.is_over());
    }
    std::unique_ptr<Communicator> ready(On nodes, int rank = 0)
    {
        auto comm = make(nodes, rank);
        std::vector<ScriptedPeer::Answer> script = {sets(our_settings())}; // the roll call
        if (nodes == On::kOneNode) {
            script.push_back(no_ticket({}));
            script.push_back(sets(our_settings()));
        }
        make_ready(*comm, std::move(script));
        return comm;
    }
    [[nodiscard]] std::uint64_t counter(hetcoll_counter which) const
    {
        return process_->counters().counter(which);
    }
    static bool begins(const std::string &line, const std::string &with)
    {
        return line.rfind(with, 0) == 0;
    }

    std::unique_ptr<Process> process_;
    hetcoll_facts agreed_;
    ScriptedPeer peer_;
};

// ---- ranks that differ ----

TEST_F(CommunicatorTest, RanksThatAgreeAreSaidNothingOf)
{
    const auto comm = ready(On::kTwoNodes);
    EXPECT_EQ(take_log(), std::vector<std::string>{});
    EXPECT_EQ(peer_.said(), std::vector<Message>{sets(our_settings())});
}

struct Difference {
    const char *name;
    std::uint64_t hetcoll_facts::*member;
    const char *said;
};
class EngineDifferenceTest : public CommunicatorTest,
                             public ::testing::WithParamInterface<Difference> {};

TEST_P(EngineDifferenceTest, IsSaidByRankZeroOnceAProcessWhenTheCommunicatorIsReady)
{
    agreed_.*GetParam().member = 1;
    ready(On::kTwoNodes, 1);
    EXPECT_EQ(take_log(), std::vector<std::string>{});
    const auto comm = make(On::kTwoNodes);
    EXPECT_EQ(take_log(), std::vector<std::string>{});
    make_ready(*comm, {sets(our_settings())});
    const auto log = take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_TRUE(begins(log[0], GetParam().said)) << log[0];
    ready(On::kTwoNodes);
    EXPECT_EQ(take_log(), std::vector<std::string>{});
}

constexpr Difference kDifferences[] = {
    {"TuningTable", &hetcoll_facts::tuning_table_differs,
     "0 hetcoll ignores its tuning table and chooses algorithms by price: "},
    {"Aggregators", &hetcoll_facts::aggregators_differs, "0 hetcoll uses no aggregators: "},
    {"FixedPoint", &hetcoll_facts::fixed_point_differs, "0 hetcoll adds floats as usual: "},
};
INSTANTIATE_TEST_SUITE_P(Facts, EngineDifferenceTest, ::testing::ValuesIn(kDifferences),
                         [](const auto &param) { return param.param.name; });

class EngineSettingsTest : public CommunicatorTest {
protected:
    static hetcoll_settings forced()
    {
        hetcoll_settings settings = default_settings();
        settings.algorithm = "ring";
        settings.chunk_bytes = 4096;
        return settings;
    }
    EngineSettingsTest() : CommunicatorTest(forced()) {}

    static bool is_forced(Communicator &comm)
    {
        hetcoll_call call{};
        call.kind = HETCOLL_INT32;
        call.op = HETCOLL_SUM;
        const Choice choice = comm.planner().chooser().choose(call, 1u << 26, {});
        EXPECT_EQ(choice.algorithm == Algorithm::kRing, choice.chunk_bytes == 4096);
        return choice.chunk_bytes == 4096;
    }
};

TEST_F(EngineSettingsTest, WhatAllHaveSetIsUsed)
{
    const auto comm = ready(On::kTwoNodes);
    EXPECT_TRUE(is_forced(*comm));
    EXPECT_EQ(take_log(), std::vector<std::string>{});
}

TEST_F(EngineSettingsTest, WhatAProgramHasSetOtherwiseOnARankIsUsedByNone)
{
    for (const std::uint64_t change : {std::uint64_t{1}, std::uint64_t{1} << 32}) {
        for (int rank = 0; rank < 2; ++rank) { // rank 0 speaks, each time
            const auto comm = make(On::kTwoNodes, rank);
            make_ready(*comm, {sets(our_settings() + change)});
            EXPECT_FALSE(is_forced(*comm));
            const auto log = take_log();
            ASSERT_EQ(log.size(), rank == 0 ? 1u : 0u);
            EXPECT_TRUE(rank != 0 || begins(log[0], "0 hetcoll: the ranks of a communicator set "
                                                    "coll_hetcoll_algorithm or "))
                << log[0];
        }
    }
}

// ---- the pages ----

TEST_F(CommunicatorTest, ALostMessageEndsTheMakingOfPages)
{
    const auto comm = make(On::kTwoNodes);
    peer_.answer({ScriptedPeer::Answer(-7)});
    EXPECT_EQ(comm->make_ready(kTag), Progress::kFailed);
    EXPECT_EQ(comm->group().code(), -7);
    EXPECT_FALSE(comm->is_ready());
}

TEST_F(CommunicatorTest, ARankOfTheNodeThatCannotAttachKeepsAllFromThePage)
{
    const auto comm = make(On::kOneNode);
    make_ready(*comm, {sets(our_settings()), no_ticket({}), sets(our_settings(), kNoPage)});
    EXPECT_FALSE(comm->group().uses_pages());
    EXPECT_EQ(flags_of(peer_.said()[2]), Flags{});
    EXPECT_EQ(take_log(), std::vector<std::string>{}); // that rank says why
}

TEST_F(CommunicatorTest, ARankThatCannotAttachTellsAllAndSaysWhyAloudOnce)
{
    for (const char *level : {"0", "1"}) {
        const auto comm = make(On::kOneNode, 1);
        make_ready(*comm, {sets(our_settings()), no_ticket({}), sets(our_settings())});
        EXPECT_FALSE(comm->group().uses_pages());
        EXPECT_EQ(flags_of(peer_.said()[2]), kNoPage);
        const auto log = take_log();
        ASSERT_EQ(log.size(), 1u);
        EXPECT_TRUE(begins(log[0], std::string(level) +
                                       " hetcoll: ranks of a node do without shared memory and "
                                       "exchange messages instead: "))
            << log[0];
    }
}

TEST_F(CommunicatorTest, ALeaderWithoutAPageIsNotAskedForOne)
{
    const auto comm = make(On::kOneNode, 1);
    make_ready(*comm, {sets(our_settings()), no_ticket(kNoPage), sets(our_settings(), kNoPage)});
    EXPECT_FALSE(comm->group().uses_pages());
    EXPECT_EQ(flags_of(peer_.said()[2]), Flags{});
    EXPECT_EQ(take_log(), std::vector<std::string>{}); // the leader says why
}

TEST_F(CommunicatorTest, OneMachineInSeveralContainersIsSaidOnceByRankZero)
{
    std::array<hetcoll_facts, 2> facts = {agreed_, agreed_};
    ++facts[1].identity.host;
    hetcoll_p2p table = peer_.table();
    table.rank = 1;
    const Communicator other(*process_, table, agreed_, facts);
    EXPECT_EQ(take_log(), std::vector<std::string>{});
    table.rank = 0;
    const Communicator first(*process_, table, agreed_, facts),
        second(*process_, table, agreed_, facts);
    const auto log = take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_TRUE(begins(log[0], "0 hetcoll: ranks on one machine are in different containers or "
                               "namespaces"))
        << log[0];
}

TEST_F(CommunicatorTest, NodesThatTheUserHasNamedAreNoContainers)
{
    hetcoll_settings settings = default_settings();
    settings.node = "left";
    const auto process = make_process(settings);
    std::array<hetcoll_facts, 2> facts = {process->facts(), agreed_};
    ASSERT_NE(facts[0].identity.host, facts[1].identity.host);
    ASSERT_EQ(facts[0].identity.machine, facts[1].identity.machine);
    take_log();
    const Communicator comm(*process, peer_.table(), facts[0], facts);
    EXPECT_EQ(take_log(), std::vector<std::string>{});
}

// ---- small calls on host memory ----

class HostCallTest : public CommunicatorTest {
protected:
    static constexpr std::size_t kCount = 4;

    explicit HostCallTest(const hetcoll_settings &settings = default_settings())
        : CommunicatorTest(settings)
    {
    }

    // A call's buffers: on the stack, which is surely host memory whatever allocates the heap.
    struct Vectors {
        std::array<int, kCount> send{1, 2, 3, 4}, recv{};
    };
    static hetcoll_call call(Vectors &vectors)
    {
        hetcoll_call made{};
        made.send = vectors.send.data();
        made.recv = vectors.recv.data();
        made.kind = HETCOLL_INT32;
        made.op = HETCOLL_SUM;
        made.count = kCount;
        made.span = kCount * sizeof(int);
        made.dense = 1;
        made.tag = kTag;
        return made;
    }

    const std::vector<int> mine_{1, 2, 3, 4}, theirs_{10, 20, 30, 40};
    static constexpr std::array<int, kCount> kSums{11, 22, 33, 44};
};

TEST_F(HostCallTest, IsServedInOneMeeting)
{
    Vectors vectors;
    const auto comm = ready(On::kTwoNodes);
    peer_.answer({sum_of(theirs_, kDeviceMemory)}); // whatever the other has
    EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said(), std::vector<Message>{sum_of(mine_, kHostMemory)});
    EXPECT_EQ(vectors.recv, kSums);
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), 1u);
    EXPECT_EQ(counter(HETCOLL_CALLS_FAILED), 0u);
}

TEST_F(HostCallTest, IsServedInThePageOfItsNode)
{
    Vectors vectors;
    const auto comm = ready(On::kOneNode);
    ASSERT_TRUE(comm->group().uses_pages());
    ControlPage::Slot &slot = comm->group().slot(1); // the other rank has come already
    std::memcpy(slot.payload[1], theirs_.data(), kCount * sizeof(int));
    slot.said[1] = kHostMemory;
    slot.call[1] = signature_of(call(vectors));
    slot.arrived = 1;
    peer_.answer({});
    EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), HETCOLL_SUCCESS);
    EXPECT_EQ(peer_.said().size(), 0u);
    EXPECT_EQ(comm->group().own_slot().said[1], kHostMemory);
    EXPECT_EQ(vectors.recv, kSums);
}

TEST_F(HostCallTest, AFailureOfTheOtherIsTheResultAndPeersAreFoundAnew)
{
    Vectors vectors;
    const auto comm = ready(On::kTwoNodes);
    peer_.answer({sum_of(theirs_, kDeviceMemory | kFailed)});
    EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(vectors.recv, Vectors{}.recv);
    EXPECT_EQ(counter(HETCOLL_CALLS_FAILED), 1u);
    const auto log = take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_TRUE(begins(log[0], "0 hetcoll: MPI_Allreduce failed")) << log[0];
}

TEST_F(HostCallTest, WhatTheOtherSaysOfLargerCallsChangesNothing)
{
    Vectors vectors;
    const auto comm = ready(On::kTwoNodes);
    for (const Flags flags : {kMustStage, kNoMapping, kNewBuffers, kNoPage, kUnreachable}) {
        peer_.answer({sum_of(theirs_, kHostMemory | flags)});
        EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), HETCOLL_SUCCESS) << flags;
    }
}

TEST_F(HostCallTest, ALostMeetingIsTheNetworksCodeAndItsMessageIsLeftAlone)
{
    Vectors vectors;
    const auto comm = ready(On::kTwoNodes);
    const Messages *const before = &comm->messages();
    peer_.answer({ScriptedPeer::Answer(-7)});
    EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), -7);
    EXPECT_NE(&comm->messages(), before);
    EXPECT_EQ(counter(HETCOLL_CALLS_FAILED), 1u);
}

TEST_F(HostCallTest, OtherCallsAreNotServedHereAndNobodyHearsOfThem)
{
    Vectors vectors;
    const auto comm = ready(On::kTwoNodes);
    EXPECT_EQ(comm->agreed().small_limit(), hetcoll_default_settings().small_limit);
    Numbers<int> device(Where::kDevice, mine_);
    std::vector<hetcoll_call> others(5, call(vectors));
    others[0].kind = -1;
    others[1].user_op = 2;
    others[2].span = 8193;
    others[3].recv = device.data();
    others[4].send = device.data();
    peer_.answer({});
    for (std::size_t i = 0; i < others.size(); ++i) {
        EXPECT_EQ(HostCalls(*comm).try_serve(others[i]), std::nullopt) << i;
    }
    EXPECT_EQ(peer_.said().size(), 0u);
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), 0u);
}

TEST_F(HostCallTest, NoCallIsServedHereBeforeTheCommunicatorIsReady)
{
    Vectors vectors;
    const auto comm = make(On::kTwoNodes);
    EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), std::nullopt);
}

class FixedPointHostCallTest : public HostCallTest {
protected:
    static hetcoll_settings fixed_point()
    {
        hetcoll_settings settings = default_settings();
        settings.fixed_point = 8;
        return settings;
    }
    FixedPointHostCallTest() : HostCallTest(fixed_point()) {}
};

TEST_F(FixedPointHostCallTest, SumsOfFloatsAreNotServedHereAndAllElseIs)
{
    Vectors vectors;
    const auto comm = ready(On::kTwoNodes);
    EXPECT_EQ(comm->agreed().fixed_point_bits(), 8);
    hetcoll_call floats = call(vectors);
    floats.kind = HETCOLL_FLOAT32;
    EXPECT_EQ(HostCalls(*comm).try_serve(floats), std::nullopt);
    floats.op = HETCOLL_MAX;
    for (const hetcoll_call &made : {floats, call(vectors)}) {
        peer_.answer({sum_of(theirs_, kHostMemory)});
        EXPECT_EQ(HostCalls(*comm).try_serve(made), HETCOLL_SUCCESS);
    }
}

// ---- small calls on device memory ----

TEST_F(HostCallTest, AfterASmallCallOnDevicesPeersAreLookedForOnANodeOnly)
{
    for (const On nodes : {On::kOneNode, On::kTwoNodes}) {
        const auto comm = ready(nodes);
        EXPECT_FALSE(comm->planner().should_find_peers());
        comm->planner().note_small_device_call();
        EXPECT_EQ(comm->planner().should_find_peers(), nodes == On::kOneNode);
    }
}

TEST_F(HostCallTest, WhileThePeersAreToBeFoundNoCallIsServedHere)
{
    Vectors vectors;
    const auto comm = ready(On::kOneNode);
    comm->planner().note_small_device_call();
    EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), std::nullopt);
}

class PinnedPageTest : public CommunicatorTest {
protected:
    explicit PinnedPageTest(unsigned long max_memory = 0) : CommunicatorTest(bounded(max_memory))
    {
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
    }
    static hetcoll_settings bounded(unsigned long max_memory)
    {
        hetcoll_settings settings = default_settings();
        settings.max_memory = max_memory;
        return settings;
    }
    Device device_{*cuda().driver, cuda().context, -1};
};

TEST_F(PinnedPageTest, IsPinnedOnceForADevice)
{
    const auto comm = ready(On::kOneNode);
    const CallCount calls("cuMemHostRegister");
    comm->page_pins().pin(device_);
    comm->page_pins().pin(device_);
    EXPECT_EQ(calls.get(), 1u);
    EXPECT_EQ(take_log(), std::vector<std::string>{});
}

TEST_F(PinnedPageTest, WithoutAPageNothingIsPinned)
{
    const auto comm = ready(On::kTwoNodes);
    const CallCount calls("cuMemHostRegister");
    comm->page_pins().pin(device_);
    EXPECT_EQ(calls.get(), 0u);
}

TEST_F(PinnedPageTest, WhereItCannotBePinnedSmallCallsSaySoOnceAndGoOn)
{
    const auto comm = ready(On::kOneNode);
    const Faults faults("cuMemHostRegister:*:2");
    comm->page_pins().pin(device_);
    comm->page_pins().pin(device_);
    const auto log = take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_TRUE(begins(log[0], "1 hetcoll: small calls go by pageable memory: cuMemHostRegister"))
        << log[0];
}

class UnpinnedPageTest : public PinnedPageTest {
protected:
    UnpinnedPageTest() : PinnedPageTest(256u << 10) {} // less than the memory of a bounce
};

TEST_F(UnpinnedPageTest, IsNotPinnedBeyondTheBoundOfMemory)
{
    const auto comm = ready(On::kOneNode);
    Numbers<int> vector(Where::kDevice, {1});
    const auto bounce = process_->gpus().pool().borrow_device(
        *process_->gpus().pointers().find(vector.data()), Sends::kBounced);
    ASSERT_TRUE(bounce.ok());
    const auto more = (*bounce)->device()->make_pinned(256u << 10);
    ASSERT_TRUE(more.ok());
    take_log();
    const CallCount calls("cuMemHostRegister");
    comm->page_pins().pin(device_);
    EXPECT_EQ(calls.get(), 0u);
    const auto log = take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_TRUE(begins(log[0], "1 hetcoll: small calls go by pageable memory: pinning "));
    EXPECT_NE(log[0].find("coll_hetcoll_max_memory 262144 allows"), std::string::npos) << log[0];
}

// ---- one rank ----

TEST_F(HostCallTest, ACommunicatorOfOneRankMeetsNobody)
{
    Vectors vectors;
    const auto comm = make(On::kTwoNodes, 0, 1);
    EXPECT_EQ(comm->make_ready(kTag), Progress::kDone);
    EXPECT_TRUE(comm->is_ready());
    EXPECT_FALSE(comm->group().uses_pages());
    EXPECT_FALSE(comm->planner().peers().known());
    EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), std::nullopt);
    EXPECT_EQ(peer_.said().size(), 0u);
    EXPECT_EQ(take_log(), std::vector<std::string>{});
}

TEST_F(HostCallTest, WhatACommunicatorHasServedIsCountedWhenItIsGone)
{
    Vectors vectors;
    {
        const auto comm = ready(On::kTwoNodes);
        peer_.answer({sum_of(theirs_, kHostMemory)});
        EXPECT_EQ(HostCalls(*comm).try_serve(call(vectors)), HETCOLL_SUCCESS);
    }
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), 1u);
}

} // namespace
} // namespace hetcoll::test
