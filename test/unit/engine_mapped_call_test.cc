#include "engine/communicator/mapped_call.h"

#include "engine_ranks.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {
namespace {

using test::DeviceBuffer;
using test::RanksOnGpus;
using test::take_log;

constexpr std::size_t kBytes = RanksOnGpus::kBytes;

// Two ranks of one node, which know their peers; a buffer more on each.
class MappedCallTest : public ::testing::Test {
protected:
    MappedCallTest()
    {
        EXPECT_TRUE(ranks_.find_peers());
        for (int rank = 0; rank < 2; ++rank) {
            others_.emplace_back(kBytes);
            calls_.push_back(std::make_unique<MappedCall>(*ranks_.processes[rank],
                                                          ranks_.group(rank), *ranks_.peers[rank]));
            EXPECT_TRUE(ranks_.bounces[rank]->enter().ok());
        }
    }
    ~MappedCallTest() override
    {
        for (int rank = 1; rank >= 0; --rank) {
            calls_[rank]->release();
            ranks_.bounces[rank]->leave();
        }
    }

    [[nodiscard]] std::byte *recv(int rank) const { return ranks_.buffers[rank].data(); }
    [[nodiscard]] std::byte *send(int rank) const { return others_[rank].data(); }
    // From send() to recv().
    [[nodiscard]] MappedCall::Buffers apart(int rank)
    {
        return {.send = send(rank),
                .recv = recv(rank),
                .send_info = others_[rank].info(*ranks_.processes[rank]),
                .recv_info = ranks_.infos[rank],
                .foreign = false,
                .bytes = kBytes};
    }
    [[nodiscard]] MappedCall::Buffers in_place(int rank)
    {
        MappedCall::Buffers buffers = apart(rank);
        buffers.send = buffers.recv;
        buffers.send_info = buffers.recv_info;
        return buffers;
    }
    // Rank 0's.
    MappedCall::Copy plan(Algorithm algorithm, const MappedCall::Buffers &buffers)
    {
        auto copy = calls_[0]->plan(algorithm, buffers, *ranks_.bounces[0]);
        EXPECT_TRUE(copy.ok()) << copy.status().message();
        return copy.ok() ? *copy : MappedCall::Copy{};
    }
    [[nodiscard]] MappedCall &call(int rank = 0) { return *calls_[rank]; }
    void map_all(Algorithm algorithm)
    {
        for (const auto &call : calls_) {
            auto mapped = call->map(algorithm, nullptr);
            ASSERT_TRUE(mapped.ok()) << mapped.status().message();
            EXPECT_TRUE(*mapped);
        }
    }

    RanksOnGpus ranks_{{"", ""}};
    std::deque<DeviceBuffer> others_;
    std::vector<std::unique_ptr<MappedCall>> calls_;
};

void expect_no_copy(const MappedCall::Copy &copy) { EXPECT_EQ(copy.to, nullptr); }

// ---- which memory stands for the vectors ----

TEST_F(MappedCallTest, TwoBuffersThatCanBeSharedAreTheVectors)
{
    expect_no_copy(plan(Algorithm::kTwoShot, apart(0)));
    EXPECT_EQ(call().input(), send(0));
    EXPECT_EQ(call().output(), recv(0));
    EXPECT_TRUE(call().keeps_input());
    expect_no_copy(call().copy_out());
}

TEST_F(MappedCallTest, ACallInPlaceNeedsNoCopyWhereTheInputMayGo)
{
    expect_no_copy(plan(Algorithm::kRing, in_place(0)));
    EXPECT_EQ(call().input(), recv(0));
    EXPECT_EQ(call().output(), recv(0));
    EXPECT_FALSE(call().keeps_input());
}

TEST_F(MappedCallTest, AForeignInputGoesToTheOutputFirst)
{
    MappedCall::Buffers buffers = apart(0);
    buffers.foreign = true;
    const auto copy = plan(Algorithm::kTwoShot, buffers);
    EXPECT_EQ(copy.to, recv(0));
    EXPECT_EQ(copy.from, send(0));
    EXPECT_EQ(call().input(), recv(0));
    EXPECT_EQ(call().output(), recv(0));
    expect_no_copy(call().copy_out());
}

// Peers read the input while this rank writes its result.
TEST_F(MappedCallTest, OneShotInPlaceCopiesItsInputAside)
{
    const auto copy = plan(Algorithm::kOneShot, in_place(0));
    EXPECT_EQ(copy.from, recv(0));
    EXPECT_EQ(copy.to, call().input());
    EXPECT_NE(call().input(), recv(0));
    EXPECT_EQ(call().output(), recv(0));
    expect_no_copy(call().copy_out());
}

TEST_F(MappedCallTest, OneShotApartReadsTheInputWhereItIs)
{
    expect_no_copy(plan(Algorithm::kOneShot, apart(0)));
    EXPECT_EQ(call().input(), send(0));
}

TEST_F(MappedCallTest, CopyInAlwaysCopiesItsInputAside)
{
    const auto copy = plan(Algorithm::kCopyIn, apart(0));
    EXPECT_EQ(copy.from, send(0));
    EXPECT_EQ(copy.to, call().input());
    EXPECT_NE(call().input(), send(0));
    EXPECT_EQ(call().output(), recv(0));
}

TEST_F(MappedCallTest, AnOutputThatCannotBeSharedGetsItsResultAtTheEnd)
{
    MappedCall::Buffers buffers = apart(0);
    buffers.recv_info.kind = MemoryKind::kManaged;
    const auto copy = plan(Algorithm::kTwoShot, buffers);
    EXPECT_EQ(copy.from, send(0));
    EXPECT_EQ(copy.to, call().input());
    EXPECT_EQ(call().output(), call().input());
    EXPECT_NE(call().output(), recv(0));
    EXPECT_EQ(call().copy_out().to, recv(0));
    EXPECT_EQ(call().copy_out().from, call().output());
}

TEST_F(MappedCallTest, AnInputThatIsKeptHasTheResultBesideIt)
{
    MappedCall::Buffers buffers = in_place(0);
    buffers.keep_input = true;
    expect_no_copy(plan(Algorithm::kTwoShot, buffers));
    EXPECT_TRUE(call().keeps_input());
    EXPECT_EQ(call().input(), recv(0));
    EXPECT_NE(call().output(), recv(0));
    EXPECT_EQ(call().copy_out().to, recv(0));
    EXPECT_EQ(call().copy_out().from, call().output());
}

TEST_F(MappedCallTest, MemoryOfOursStandsInForABufferThatAPeerCouldNotMap)
{
    static_cast<void>(plan(Algorithm::kTwoShot, apart(0)));
    static_cast<void>(call().publish());
    ControlPage::Buffers &said = ranks_.group(1).own_slot().unmapped;
    said = {.inputs = 2, .outputs = 2}; // of another rank
    call().hear_unmapped();
    expect_no_copy(plan(Algorithm::kTwoShot, apart(0)));

    said = {.inputs = 1, .outputs = 0};
    call().hear_unmapped();
    EXPECT_EQ(plan(Algorithm::kTwoShot, apart(0)).to, recv(0)); // which can be shared
    said = {.inputs = 0, .outputs = 1};
    call().hear_unmapped();
    EXPECT_NE(plan(Algorithm::kTwoShot, apart(0)).to, recv(0));
    static_cast<void>(call().publish());
    EXPECT_TRUE(ranks_.group(0).own_slot().output.stands_in);
    EXPECT_EQ(call().copy_out().to, recv(0));
}

TEST_F(MappedCallTest, WithoutMemoryAnInputIsNotKept)
{
    MappedCall::Buffers buffers = in_place(0);
    buffers.keep_input = true;
    const test::Faults faults("cuMemAlloc:*:2");
    take_log();
    expect_no_copy(plan(Algorithm::kTwoShot, buffers));
    EXPECT_FALSE(call().keeps_input());
    const auto log = take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_EQ(log[0].rfind("1 hetcoll: a call in place waits for the rank that comes last: ", 0),
              0u)
        << log[0];
}

TEST_F(MappedCallTest, WithoutMemoryToCopyToACallCannotShare)
{
    const test::Faults faults("cuMemAlloc:*:2");
    const auto copy = call().plan(Algorithm::kCopyIn, apart(0), *ranks_.bounces[0]);
    ASSERT_FALSE(copy.ok());
    EXPECT_EQ(copy.status().code(), Errc::kNoMemory);
}

// ---- new buffers ----

TEST_F(MappedCallTest, BuffersAreNewUntilAllHaveMappedThem)
{
    plan(Algorithm::kTwoShot, apart(0));
    EXPECT_TRUE(call().publish());
    call().remember();
    plan(Algorithm::kTwoShot, apart(0));
    EXPECT_FALSE(call().publish());
}

TEST_F(MappedCallTest, BuffersAreNewToWhoMapsThemForAnotherAlgorithmOrLateRank)
{
    plan(Algorithm::kTwoShot, apart(0));
    call().remember();
    plan(Algorithm::kLeader, apart(0));
    EXPECT_TRUE(call().publish());
    MappedCall::Buffers buffers = apart(0);
    buffers.late = 1;
    plan(Algorithm::kTwoShot, buffers);
    EXPECT_TRUE(call().publish());
    plan(Algorithm::kTwoShot, apart(0));
    EXPECT_FALSE(call().publish());
}

TEST_F(MappedCallTest, TheProgressOfTheCallBeforeIsGone)
{
    const std::vector<LocalStep> steps{{.word = 0}, {.word = -1}, {.word = 1}};
    plan(Algorithm::kRing, apart(0));
    call().peers(steps).progress[1] = 77;
    static_cast<void>(call().publish());
    EXPECT_EQ(ranks_.group(1).slot(0).progress[1], 0u);
}

// ---- mapping, kernels ----

TEST_F(MappedCallTest, EachRankMapsTheOthersVectors)
{
    for (int rank = 0; rank < 2; ++rank) {
        ASSERT_TRUE(call(rank).plan(Algorithm::kTwoShot, apart(rank), *ranks_.bounces[rank]).ok());
        static_cast<void>(call(rank).publish());
    }
    map_all(Algorithm::kTwoShot);
    const MappedPeers peers = call(1).peers({});
    EXPECT_EQ(peers.peer[0].input, send(0));
    EXPECT_EQ(peers.peer[0].output, recv(0));
    EXPECT_EQ(peers.peer[1].input, nullptr); // itself
    EXPECT_EQ(peers.progress, ranks_.group(1).own_slot().progress);
}

TEST_F(MappedCallTest, OnlyTheLeaderMapsForItsKernel)
{
    for (int rank = 0; rank < 2; ++rank) {
        ASSERT_TRUE(call(rank).plan(Algorithm::kLeader, apart(rank), *ranks_.bounces[rank]).ok());
        static_cast<void>(call(rank).publish());
    }
    map_all(Algorithm::kLeader);
    EXPECT_NE(call(0).peers({}).peer[1].input, nullptr);
    EXPECT_EQ(call(1).peers({}).peer[0].input, nullptr);
    auto started = call(1).start_kernel(Algorithm::kLeader, ReduceOp::kSum, ElementKind::kInt32, 9);
    ASSERT_TRUE(started.ok());
    EXPECT_FALSE(*started);
}

TEST_F(MappedCallTest, TwoShotSumsAShareOnEachRank)
{
    const std::size_t count = kBytes / 4;
    std::vector<std::int32_t> sum(count);
    for (int rank = 0; rank < 2; ++rank) {
        std::vector<std::int32_t> part(count);
        for (std::size_t i = 0; i < count; ++i) {
            part[i] = (rank + 1) * static_cast<int>(i);
            sum[i] += part[i];
        }
        test::upload(others_[rank].address(), part);
        ASSERT_TRUE(call(rank).plan(Algorithm::kTwoShot, apart(rank), *ranks_.bounces[rank]).ok());
        static_cast<void>(call(rank).publish());
    }
    map_all(Algorithm::kTwoShot);
    for (int rank = 0; rank < 2; ++rank) {
        auto started = call(rank).start_kernel(Algorithm::kTwoShot, ReduceOp::kSum,
                                               ElementKind::kInt32, count);
        ASSERT_TRUE(started.ok() && *started);
        Result<bool> done = false;
        while (done.ok() && !*done) {
            done = ranks_.bounces[rank]->kernel_done();
        }
        ASSERT_TRUE(done.ok());
        EXPECT_EQ(call(rank).bytes_mapped(), kBytes); // one input and one output of half a vector
    }
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(test::download<std::int32_t>(ranks_.buffers[rank].address(), count), sum);
    }
}

// A rank that has not announced its vectors yet.
TEST_F(MappedCallTest, AMissingRankIsNotMappedAndHasAStandIn)
{
    plan(Algorithm::kTwoShot, apart(0));
    static_cast<void>(call().publish());
    auto mapped = call().map(Algorithm::kTwoShot, nullptr, 1);
    ASSERT_TRUE(mapped.ok() && *mapped);
    const MappedPeer &missing = call().peers({}).peer[1];
    EXPECT_EQ(missing.input, send(0));
    EXPECT_EQ(missing.output, recv(0));
}

TEST_F(MappedCallTest, AScheduleMapsOnlyWhomItNames)
{
    Schedule schedule = build_ring(0, 2);
    for (int rank = 0; rank < 2; ++rank) {
        ASSERT_TRUE(call(rank).plan(Algorithm::kRing, apart(rank), *ranks_.bounces[rank]).ok());
        static_cast<void>(call(rank).publish());
    }
    auto mapped = call().map(Algorithm::kRing, &schedule);
    ASSERT_TRUE(mapped.ok() && *mapped);
    EXPECT_EQ(call().peers({}).peer[1].input, send(1));
    schedule.steps.clear();
    mapped = call().map(Algorithm::kRing, &schedule);
    ASSERT_TRUE(mapped.ok() && *mapped);
    EXPECT_EQ(call().peers({}).peer[1].input, nullptr);
}

// Their trials went well, but rank 0 takes rank 1 for a process that is gone.
class LostPeerTest : public ::testing::Test {
protected:
    LostPeerTest()
    {
        EXPECT_TRUE(ranks_.find_peers());
        for (int rank = 0; rank < 2; ++rank) {
            ranks_.group(rank).own_slot().reach = 3;
            calls_.push_back(std::make_unique<MappedCall>(*ranks_.processes[rank],
                                                          ranks_.group(rank), *ranks_.peers[rank]));
            plan(rank);
            EXPECT_TRUE(calls_[rank]->publish());
        }
    }
    ~LostPeerTest() override
    {
        for (const auto &call : calls_) {
            call->release();
        }
    }

    void plan(int rank)
    {
        std::byte *const buffer = ranks_.buffers[rank].data();
        EXPECT_TRUE(ranks_.bounces[rank]->enter().ok());
        EXPECT_TRUE(calls_[rank]
                        ->plan(Algorithm::kTwoShot,
                               {.send = buffer,
                                .recv = buffer,
                                .send_info = ranks_.infos[rank],
                                .recv_info = ranks_.infos[rank],
                                .foreign = false,
                                .bytes = kBytes},
                               *ranks_.bounces[rank])
                        .ok());
        ranks_.bounces[rank]->leave();
    }

    RanksOnGpus ranks_{{"", ""}, {}, [](std::vector<ProcessIdentity> &identities) {
                           identities[1].start_time += 1;
                       }};
    std::vector<std::unique_ptr<MappedCall>> calls_;
};

TEST_F(LostPeerTest, AFailedMappingIsAnErrorAndStillTellsWhomToServe)
{
    EXPECT_FALSE(calls_[0]->map(Algorithm::kTwoShot, nullptr).ok());
    const MappedPeer &lost = calls_[0]->peers({}).peer[1];
    EXPECT_EQ(lost.input, ranks_.buffers[0].data()); // its own stands in
    EXPECT_EQ(lost.progress, ranks_.group(0).slot(1).progress);
    auto mapped = calls_[1]->map(Algorithm::kTwoShot, nullptr);
    EXPECT_TRUE(mapped.ok() && *mapped);
}

// Mappings of this rank may be closed: others have to map once more too.
TEST_F(LostPeerTest, BuffersAreNewAfterAFailedMapping)
{
    calls_[0]->remember();
    plan(0);
    EXPECT_FALSE(calls_[0]->publish());
    EXPECT_FALSE(calls_[0]->map(Algorithm::kTwoShot, nullptr).ok());
    plan(0);
    EXPECT_TRUE(calls_[0]->publish());
}

TEST_F(LostPeerTest, WhoMapsNobodyAnyMoreFindsNoPeers)
{
    ranks_.peers[0]->give_up_mapping();
    auto mapped = calls_[0]->map(Algorithm::kTwoShot, nullptr);
    EXPECT_TRUE(mapped.ok() && *mapped);
    EXPECT_EQ(calls_[0]->peers({}).peer[1].input, nullptr);
}

// ---- what the kernels read and write ----

// Four ranks of one node, which have mapped each other's buffers, in place.
class KernelWorkTest : public ::testing::Test {
protected:
    using Order = std::vector<int>;
    static constexpr std::size_t kCount = kBytes / sizeof(float);

    KernelWorkTest()
    {
        EXPECT_TRUE(ranks_.find_peers());
        for (int rank = 0; rank < kRanks; ++rank) {
            calls_.push_back(std::make_unique<MappedCall>(*ranks_.processes[rank],
                                                          ranks_.group(rank), *ranks_.peers[rank]));
            EXPECT_TRUE(ranks_.bounces[rank]->enter().ok());
        }
        for (int rank = 0; rank < kRanks; ++rank) {
            std::byte *const buffer = ranks_.buffers[rank].data();
            const PointerInfo &info = ranks_.infos[rank];
            auto planned = calls_[rank]->plan(Algorithm::kTwoShot,
                                              {.send = buffer,
                                               .recv = buffer,
                                               .send_info = info,
                                               .recv_info = info,
                                               .foreign = false,
                                               .bytes = kBytes},
                                              *ranks_.bounces[rank]);
            EXPECT_TRUE(planned.ok());
            EXPECT_TRUE(calls_[rank]->publish());
        }
        for (const auto &call : calls_) {
            auto mapped = call->map(Algorithm::kTwoShot, nullptr);
            EXPECT_TRUE(mapped.ok() && *mapped);
        }
    }
    ~KernelWorkTest() override
    {
        for (int rank = kRanks - 1; rank >= 0; --rank) {
            calls_[rank]->release();
            ranks_.bounces[rank]->leave();
        }
    }

    // Whose memory is at each of the addresses, `offset` bytes into it, as `rank` has it mapped.
    template <class Address> [[nodiscard]] Order whose(int rank, const Address *addresses,
                                                       std::int64_t count, std::size_t offset)
    {
        Order owners;
        const MappedPeers peers = calls_[rank]->peers({});
        for (std::int64_t i = 0; i < count; ++i) {
            const auto *const at = static_cast<const std::byte *>(addresses[i]) - offset;
            for (int peer = 0; peer < kRanks; ++peer) {
                if (at == (peer == rank ? calls_[rank]->output() : peers.peer[peer].output)) {
                    owners.push_back(peer);
                }
            }
        }
        return owners;
    }
    [[nodiscard]] Order inputs(int rank, ReduceOp op, ElementKind kind)
    {
        const auto work = calls_[rank]->kernel_work(Algorithm::kTwoShot, op, kind,
                                                    kBytes / element_bytes(kind), lists_);
        return whose(rank, work.in.input, work.in.count, rank * kBytes / kRanks);
    }
    [[nodiscard]] Order outputs(int rank, Algorithm algorithm = Algorithm::kTwoShot)
    {
        const auto work = calls_[rank]->kernel_work(algorithm, ReduceOp::kSum,
                                                    ElementKind::kFloat32, kCount, lists_);
        const bool share = algorithm == Algorithm::kTwoShot;
        return whose(rank, work.out.output, work.out.count, share ? rank * kBytes / kRanks : 0);
    }

    static constexpr int kRanks = 4;
    RanksOnGpus ranks_{{"", "", "", ""}};
    std::vector<std::unique_ptr<MappedCall>> calls_;
    OperandLists lists_; // of more ranks
};

TEST_F(KernelWorkTest, RanksWriteToDifferentPeersAtATime)
{
    EXPECT_EQ(outputs(0), (Order{0, 1, 2, 3}));
    EXPECT_EQ(outputs(1), (Order{1, 2, 3, 0}));
    EXPECT_EQ(outputs(3), (Order{3, 0, 1, 2}));
}

TEST_F(KernelWorkTest, RanksReadDifferentPeersAtATimeWhereTheBitsDoNotTell)
{
    EXPECT_EQ(inputs(1, ReduceOp::kSum, ElementKind::kInt32), (Order{1, 2, 3, 0}));
    EXPECT_EQ(inputs(3, ReduceOp::kMax, ElementKind::kFloat32), (Order{3, 0, 1, 2}));
}

TEST_F(KernelWorkTest, SumsOfFloatsAreInTheOrderOfTheRanks)
{
    EXPECT_EQ(inputs(3, ReduceOp::kSum, ElementKind::kFloat32), (Order{0, 1, 2, 3}));
    EXPECT_EQ(inputs(2, ReduceOp::kMaxFirst, ElementKind::kFloat16), (Order{0, 1, 2, 3}));
}

TEST_F(KernelWorkTest, OneShotWritesItsOwnResultAlone)
{
    EXPECT_EQ(outputs(2, Algorithm::kOneShot), Order{2});
}

TEST_F(KernelWorkTest, ALeaderWritesToAllAndTheOthersToNobody)
{
    EXPECT_EQ(outputs(0, Algorithm::kLeader), (Order{0, 1, 2, 3}));
    const auto work = calls_[1]->kernel_work(Algorithm::kLeader, ReduceOp::kSum,
                                             ElementKind::kFloat32, kCount, lists_);
    EXPECT_EQ(work.count, 0u);
}

} // namespace
} // namespace hetcoll
