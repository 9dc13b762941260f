#include "engine/communicator/peers.h"

#include "engine/meeting/flags.h"
#include "engine_ranks.h"
#include "test/unit/float_modes.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

using test::RanksOnGpus;
using test::take_log;

const std::string kIgnored =
    "hetcoll: coll_hetcoll_topology_file is ignored, the links are those found: ";
const std::string kLost =
    "hetcoll: does without the links between the GPUs, so messages go through "
    "host memory: ";

const std::string kUnshared =
    "hetcoll: some GPUs of this node do not share memory, so data between "
    "them goes through host memory, which is slower. First reason: ";
const std::string kNoTable = "hetcoll ignores its tuning table and chooses algorithms by price: ";

// Returns the logged lines that have these words, with the level, and empties the log.
std::vector<std::string> said(const std::string &words)
{
    std::vector<std::string> lines;
    for (const std::string &line : take_log()) {
        if (line.find(words) != std::string::npos) {
            lines.push_back(line);
        }
    }
    return lines;
}

// That there is one line about ranks that do not share, how it begins, and what it names.
void expect_said_once(const std::string &begins, const std::string &names = "")
{
    const auto log = said(kUnshared);
    ASSERT_EQ(log.size(), 1u);
    EXPECT_EQ(log[0].rfind(begins, 0), 0u) << log[0];
    EXPECT_NE(log[0].find(names), std::string::npos) << log[0];
}

// A file that is gone with it.
class File {
public:
    explicit File(const std::string &text)
        : path_(::testing::TempDir() + "/engine_peers_test." + std::to_string(getpid()))
    {
        std::ofstream(path_) << text;
    }
    ~File() { std::remove(path_.c_str()); }
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    [[nodiscard]] const char *path() const { return path_.c_str(); }

private:
    std::string path_;
};

void expect_the_same(const RanksOnGpus &ranks)
{
    const Peers &first = *ranks.peers[0];
    for (const auto &peers : ranks.peers) {
        EXPECT_TRUE(peers->known());
        EXPECT_EQ(peers->found().maps, first.found().maps);
        EXPECT_EQ(peers->found().ranks.query.available, first.found().ranks.query.available);
        EXPECT_EQ(peers->found().ranks.query.ranks_per_gpu,
                  first.found().ranks.query.ranks_per_gpu);
        EXPECT_EQ(peers->found().ranks.rates, first.found().ranks.rates);
        EXPECT_EQ(peers->found().ranks.query.links.gpu_gbps,
                  first.found().ranks.query.links.gpu_gbps);
        EXPECT_EQ(peers->found().ranks.query.links.host_gbps,
                  first.found().ranks.query.links.host_gbps);
        EXPECT_EQ(peers->found().ranks.groups.nodes, first.found().ranks.groups.nodes);
        EXPECT_EQ(peers->found().ranks.trees.ranks, first.found().ranks.trees.ranks);
        EXPECT_FALSE(peers->found().table);
    }
}

TEST(PeersTest, AllRanksOfANodeFindTheSame)
{
    RanksOnGpus ranks({"", "", ""});
    EXPECT_FALSE(ranks.peers[0]->known());
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    const Peers &peers = *ranks.peers[1];
    EXPECT_TRUE(peers.found().maps);
    EXPECT_TRUE(contains(peers.found().ranks.query.available, Algorithm::kTwoShot));
    EXPECT_EQ(peers.found().ranks.query.ranks_per_gpu, 3);
    EXPECT_EQ(peers.found().ranks.groups.nodes, (std::vector<NodeGroups>{{{0, 1, 2}}}));
    for (int rank = 0; rank < 3; ++rank) {
        for (int other = 0; other < 3; ++other) {
            EXPECT_TRUE(peers.reach(rank, other)) << rank << " and " << other;
        }
        EXPECT_TRUE(ranks.peers[rank]->is_known_device(*ranks.bounces[rank]->device()));
    }
    EXPECT_FALSE(peers.is_known_device(*ranks.bounces[0]->device()));
    EXPECT_EQ(ranks.nodes->network.unmatched(), 0);
}

TEST(PeersTest, AllRanksOfTwoNodesFindTheSame)
{
    RanksOnGpus ranks({"left", "left", "right", "right"});
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    const Peers &peers = *ranks.peers[3];
    EXPECT_TRUE(peers.found().maps);
    EXPECT_TRUE(contains(peers.found().ranks.query.available, Algorithm::kHierarchical));
    EXPECT_FALSE(contains(peers.found().ranks.query.available, Algorithm::kTwoShot));
    EXPECT_EQ(peers.found().ranks.groups.nodes, (std::vector<NodeGroups>{{{0, 1}}, {{2, 3}}}));
    EXPECT_TRUE(peers.reach(2, 3));
}

// Whether all ranks have the same prices, and all that all of them together have found.
void expect_all_prices(const RanksOnGpus &ranks)
{
    const std::shared_ptr<const PriceTable> first = ranks.peers[0]->found().prices;
    ASSERT_NE(first, nullptr);
    for (const auto &peers : ranks.peers) {
        ASSERT_NE(peers->found().prices, nullptr);
        for (int size = 0; size < PriceTable::kSizes; ++size) {
            const auto &mine = peers->found().prices->column(size), &all = first->column(size);
            EXPECT_EQ(std::memcmp(&mine, &all, sizeof all), 0) << PriceTable::bytes_of(size);
            EXPECT_GT(mine[static_cast<std::size_t>(Algorithm::kHost)].us, 0);
        }
    }
}

float cell(const RanksOnGpus &ranks, Algorithm algorithm, int size)
{
    return ranks.peers[0]->found().prices->column(size)[static_cast<std::size_t>(algorithm)].us;
}

TEST(PeersTest, EveryRankHasThePricesOfAllSizes)
{
    for (const std::vector<std::string> &words :
         {std::vector<std::string>{"", "", ""}, {"left", "left", "right", "right", "right"}}) {
        RanksOnGpus ranks(words);
        ASSERT_TRUE(ranks.find_peers());
        expect_all_prices(ranks);
        EXPECT_EQ(cell(ranks, Algorithm::kOrdered, 5), 0) << "serves reproducible calls only";
    }
}

// A program's rounding, or a library's: one rank may have it and another one not.
TEST(PeersTest, PricesDoNotDependOnTheControlRegister)
{
    const std::vector<std::string> words = {"left", "left", "right", "right", "right"};
    RanksOnGpus ranks(words);
    ASSERT_TRUE(ranks.find_peers());
    for (const test::FloatMode mode : test::kFloatModes) {
        RanksOnGpus others(words);
        bool found = false;
        {
            const test::UnderFloatMode under(mode);
            found = others.find_peers();
            EXPECT_TRUE(under.is_as_set());
        }
        ASSERT_TRUE(found);
        EXPECT_EQ(std::memcmp(others.peers[0]->found().prices.get(),
                              ranks.peers[0]->found().prices.get(), sizeof(PriceTable)),
                  0)
            << test::kFloatModeNames[static_cast<int>(mode)];
        EXPECT_EQ(others.peers[0]->found().ranks.query.links.gpu_gbps,
                  ranks.peers[0]->found().ranks.query.links.gpu_gbps);
        EXPECT_EQ(others.peers[0]->found().ranks.rates, ranks.peers[0]->found().ranks.rates);
    }
}

TEST(PeersTest, PricesServeTheNextCommunicatorOfTheSameShape)
{
    RanksOnGpus ranks({"", "", ""});
    ASSERT_TRUE(ranks.find_peers());
    std::shared_ptr<const PriceTable> known[3];
    for (int rank = 0; rank < 3; ++rank) {
        known[rank] = ranks.peers[rank]->found().prices;
        // No price of this machine.
        auto &mine = const_cast<PriceTable &>(*known[rank]);
        mine.column(3)[static_cast<std::size_t>(Algorithm::kHost)].us = 12345;
    }
    ranks.allow({.mapping = true, .tables = true});
    ASSERT_TRUE(ranks.find_peers());
    expect_all_prices(ranks);
    EXPECT_EQ(cell(ranks, Algorithm::kHost, 3), 12345);
    ranks.allow({.mapping = false, .tables = true});
    ASSERT_TRUE(ranks.find_peers());
    expect_all_prices(ranks);
    EXPECT_LT(cell(ranks, Algorithm::kHost, 3), 12345) << "of another shape";
}

TEST(PeersTest, RanksOnNodesOfTheirOwnReachNobody)
{
    RanksOnGpus ranks({"left", "right"});
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_FALSE(ranks.peers[0]->reach(0, 0));
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.ranks_per_gpu, 1);
}

TEST(PeersTest, ForbiddenMappingIsNotTried)
{
    RanksOnGpus ranks({"", ""});
    ranks.allow({.mapping = false, .tables = true});
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_FALSE(ranks.peers[0]->found().maps);
    EXPECT_FALSE(ranks.peers[0]->reach(0, 1));
    EXPECT_FALSE(contains(ranks.peers[0]->found().ranks.query.available, Algorithm::kTwoShot));
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.links.gpu_gbps, 0);
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.ranks_per_gpu, 2);
    EXPECT_EQ(ranks.group(0).own_slot().offer.seed, 0u);
}

// The placement that ranks find without a file.
AlgorithmSet found_without_a_file()
{
    RanksOnGpus ranks({"", "", ""});
    EXPECT_TRUE(ranks.find_peers());
    return ranks.peers[0]->found().ranks.query.available;
}

TEST(PeersTest, ATopologyFileThatCannotBeReadIsIgnoredWithALineANode)
{
    const AlgorithmSet before = found_without_a_file();
    RanksOnGpus ranks({"", "", ""}, [](int rank, hetcoll_settings &settings) {
        settings.topology_file = "/nowhere/topology.json";
        settings.local_rank = rank;
    });
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_TRUE(ranks.peers[0]->found().maps);
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.available, before);
    const auto ignored = said(kIgnored);
    ASSERT_EQ(ignored.size(), 1u);
    EXPECT_NE(ignored[0].find("/nowhere/topology.json"), std::string::npos) << ignored[0];
}

TEST(PeersTest, ARankWhoseDriverTellsNothingIsKnownToAll)
{
    RanksOnGpus ranks({"", ""});
    ranks.start(0);
    {
        const test::Faults faults("cuDeviceGetUuid:*:999,cuDeviceGetPCIBusId:*:999");
        ranks.start(1);
    }
    ASSERT_TRUE(ranks.run([&](int rank) { return ranks.peers[rank]->step(); }));
    expect_the_same(ranks);
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.available, kMessageAlgorithms);
    EXPECT_EQ(said(kLost).size(), 1u);
}

// Every rank knows of a difference, and one of a node says so.
TEST(PeersTest, RanksThatDisagreeOnTheTopologyFileAllIgnoreIt)
{
    const AlgorithmSet before = found_without_a_file();
    const File file("hetcoll topology 1\n"
                    "gpu gpu0 0000:01:00.0\n"
                    "cpu cpu0 numa 0\n"
                    "link gpu0 cpu0 pcie 1 12\n");
    RanksOnGpus ranks({"", "", ""}, [&](int rank, hetcoll_settings &settings) {
        settings.topology_file = rank == 2 ? file.path() : "";
        settings.local_rank = rank;
    });
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.available, before);
    EXPECT_TRUE(ranks.peers[0]->found().maps);
    const auto ignored = said(kIgnored);
    ASSERT_EQ(ignored.size(), 1u);
    EXPECT_NE(ignored[0].find("rank 2 uses a topology file"), std::string::npos) << ignored[0];
}

TEST(PeersTest, ATopologyFileWithBusIdsOfAnotherMachineIsUsedWithALineANode)
{
    const auto lines_for = [](const std::string &bus) {
        const File file("hetcoll topology 1\n"
                        "gpu gpu0 " +
                        bus +
                        "\ncpu cpu0 numa 0\n"
                        "link gpu0 cpu0 pcie 1 12\n");
        RanksOnGpus ranks({"", "", ""}, [&](int, hetcoll_settings &settings) {
            settings.topology_file = file.path();
        });
        EXPECT_TRUE(ranks.find_peers());
        expect_the_same(ranks);
        return said("has no GPU with the bus id ");
    };
    EXPECT_EQ(lines_for("-").size(), 0u); // it names none
    const auto lines = lines_for("0000:aa:00.0");
    ASSERT_EQ(lines.size(), 1u);
    const std::string words = "has no GPU with the bus id ";
    const std::string own = lines[0].substr(lines[0].find(words) + words.size(), 12);
    EXPECT_EQ(lines_for(own).size(), 0u);
}

TEST(PeersTest, AfterAFailedMappingNobodyMapsAgain)
{
    RanksOnGpus ranks({"", ""});
    ASSERT_TRUE(ranks.find_peers());
    const AlgorithmSet before = ranks.peers[0]->found().ranks.query.available;
    for (const auto &peers : ranks.peers) {
        peers->give_up_mapping();
    }
    expect_the_same(ranks);
    EXPECT_FALSE(ranks.peers[0]->found().maps);
    EXPECT_FALSE(ranks.peers[0]->reach(0, 1));
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.available,
              before & (kMessageAlgorithms | bit(Algorithm::kHierarchical)));
}

TEST(PeersTest, WhatIsForgottenIsFoundAgain)
{
    RanksOnGpus ranks({"", ""});
    ASSERT_TRUE(ranks.find_peers());
    const AlgorithmSet before = ranks.peers[0]->found().ranks.query.available;
    for (const auto &peers : ranks.peers) {
        peers->forget();
        EXPECT_FALSE(peers->known());
        EXPECT_FALSE(peers->found().maps);
        EXPECT_EQ(peers->found().ranks.query.available, kMessageAlgorithms);
        EXPECT_EQ(peers->found().ranks.query.ranks_per_gpu, 1);
    }
    EXPECT_FALSE(ranks.peers[0]->is_known_device(*ranks.bounces[0]->device()));
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_TRUE(ranks.peers[0]->found().maps);
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.available, before);
}

// ---- trials ----

TEST(PeersTest, RanksTryWhenAllHaveOfferedAndKnowWhenAllHaveTried)
{
    RanksOnGpus ranks({"", ""});
    for (int rank = 0; rank < 2; ++rank) {
        ranks.start(rank);
    }
    const ControlPage::Slot &first = ranks.group(0).slot(0), &second = ranks.group(0).slot(1);
    const std::uint32_t before = first.arrived;
    // Steps one rank alone until it has come to the meeting, and then in vain.
    const auto step_to = [&](std::uint32_t meeting, int rank) {
        const ControlPage::Slot &slot = ranks.group(rank).own_slot();
        for (int turn = 0; turn < 1000000 && slot.arrived != meeting; ++turn) {
            ASSERT_EQ(ranks.peers[rank]->step(), Progress::kPending);
            ranks.deliver();
        }
        for (int turn = 0; turn < 100; ++turn) {
            ASSERT_EQ(ranks.peers[rank]->step(), Progress::kPending);
        }
        EXPECT_EQ(slot.arrived, meeting);
        EXPECT_EQ(slot.said[meeting % 2], Flags{});
    };
    step_to(before + 1, 0); // rank 1 has sent its record
    EXPECT_NE(first.offer.seed, 0u);
    EXPECT_EQ(first.reach, 0u);
    EXPECT_EQ(second.offer.seed, 0u);

    step_to(before + 2, 1);
    EXPECT_EQ(second.reach, 3u);
    EXPECT_EQ(first.reach, 0u);

    ASSERT_TRUE(ranks.run([&](int rank) { return ranks.peers[rank]->step(); }));
    EXPECT_EQ(first.reach, 3u);
    expect_the_same(ranks);
}

// Faults of a rank: others take it for a process that is gone, or its steps have a fault.
void disguise_the_last(std::vector<ProcessIdentity> &identities)
{
    identities.back().start_time += 1;
}
bool find_with_faults(RanksOnGpus &ranks, int of_rank, const char *faults)
{
    for (int rank = 0; rank < ranks.size(); ++rank) {
        ranks.start(rank);
    }
    return ranks.run([&](int rank) {
        const test::Faults set(rank == of_rank ? faults : nullptr);
        return ranks.peers[rank]->step();
    });
}

TEST(PeersTest, AGpuThatCannotBeReadIsSaidOnceOnItsNode)
{
    RanksOnGpus ranks({"", ""}, {}, disguise_the_last);
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_TRUE(ranks.peers[0]->found().maps);
    EXPECT_FALSE(ranks.peers[0]->reach(0, 1));
    EXPECT_FALSE(contains(ranks.peers[0]->found().ranks.query.available, Algorithm::kTwoShot));
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.links.gpu_gbps, 0);
    expect_said_once("0 " + kUnshared + "rank 1: ");
}

TEST(PeersTest, AFailedTrialOnOneNodeIsKnownOnAllAndSaidThere)
{
    RanksOnGpus ranks({"left", "left", "right", "right"}, {}, disguise_the_last);
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.links.gpu_gbps, 0);
    EXPECT_TRUE(ranks.peers[0]->reach(0, 1));
    EXPECT_FALSE(ranks.peers[2]->reach(2, 3));
    expect_said_once("0 " + kUnshared + "rank 3: ");
}

// As in a second communicator: what a trial makes, maps and frees may wait for the whole device.
TEST(PeersTest, ProcessesThatHaveMetTryNothingAgain)
{
    RanksOnGpus ranks({"", "", ""});
    ASSERT_TRUE(ranks.find_peers());
    for (const auto &peers : ranks.peers) {
        peers->forget();
    }
    std::vector<test::CallCount> made;
    for (const char *const call :
         {"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemFreeHost",
          "cuStreamCreateWithPriority", "cuStreamDestroy", "cuEventCreate", "cuEventDestroy",
          "cuIpcOpenMemHandle", "cuIpcCloseMemHandle", "cuMemcpyAsync"}) {
        made.emplace_back(call);
    }
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_TRUE(ranks.peers[0]->reach(0, 2));
    for (const test::CallCount &calls : made) {
        EXPECT_EQ(calls.get(), 0u);
    }
}

// The others are told that it offers nothing, and neither side reads the other, which may be usual.
TEST(PeersTest, ARankWithoutMemoryOffersNothingAndTriesNobody)
{
    RanksOnGpus ranks({"", "", ""}, {}, disguise_the_last);
    ASSERT_TRUE(find_with_faults(ranks, 2, "cuMemAlloc:*:2"));
    expect_the_same(ranks);
    EXPECT_EQ(ranks.group(0).slot(2).offer.buffer.kind, SharedKind::kNone);
    EXPECT_EQ(ranks.group(0).slot(2).reach, 4u);
    EXPECT_TRUE(ranks.peers[2]->reach(0, 1));
    EXPECT_FALSE(ranks.peers[0]->reach(0, 2));
    EXPECT_FALSE(contains(ranks.peers[0]->found().ranks.query.available, Algorithm::kTwoShot));
    expect_said_once("1 " + kUnshared + "rank 2: ", "does not share a buffer");
}

TEST(PeersTest, WithoutMemoryOnAnyRankNobodyTries)
{
    RanksOnGpus ranks({"", ""});
    {
        const test::Faults faults("cuMemAlloc:*:2");
        ASSERT_TRUE(ranks.find_peers());
    }
    expect_the_same(ranks);
    EXPECT_FALSE(ranks.peers[0]->reach(0, 1));
    expect_said_once("0 " + kUnshared, "cuMemAlloc");
}

TEST(PeersTest, ARankWhoseTrialFailsIsReachedByNobody)
{
    RanksOnGpus ranks({"", "", ""});
    for (int rank = 0; rank < 3; ++rank) {
        ranks.start(rank);
    }
    const ControlPage::Slot &own = ranks.group(1).own_slot();
    ASSERT_TRUE(ranks.run([&](int rank) {
        const bool tries = rank == 1 && own.offer.seed != 0;
        const test::Faults faults(tries ? "cuEventQuery:*:999" : nullptr);
        return ranks.peers[rank]->step();
    }));
    expect_the_same(ranks);
    EXPECT_EQ(own.reach, 2u);
    EXPECT_EQ(ranks.group(0).own_slot().reach, 7u);
    EXPECT_TRUE(ranks.peers[1]->reach(0, 2));
    EXPECT_FALSE(ranks.peers[2]->reach(0, 1));
    expect_said_once("0 " + kUnshared + "rank 0: ", "cuEventQuery");
}

TEST(PeersTest, ARankWhoseOfferIsNotFilledOffersNothingAndTriesNobody)
{
    RanksOnGpus ranks({"", ""}, {}, disguise_the_last);
    for (int rank = 0; rank < 2; ++rank) {
        ranks.start(rank);
    }
    bool filling = true;
    ASSERT_TRUE(ranks.run([&](int rank) {
        if (rank == 0) {
            return ranks.peers[rank]->step();
        }
        const test::Faults faults(filling ? "cuEventQuery:1:999" : nullptr);
        const test::CallCount asked("cuEventQuery");
        const Progress progress = ranks.peers[rank]->step();
        filling = filling && asked.get() == 0;
        return progress;
    }));
    expect_the_same(ranks);
    EXPECT_EQ(ranks.group(0).slot(1).offer.buffer.kind, SharedKind::kNone);
    EXPECT_EQ(ranks.group(0).slot(0).reach, 1u);
    EXPECT_EQ(ranks.group(0).slot(1).reach, 2u);
    EXPECT_FALSE(ranks.peers[1]->reach(0, 1));
    expect_said_once("0 " + kUnshared + "rank 1: ", "does not share a buffer");
}

TEST(PeersTest, MemoryThatReadsBackOtherBytesIsNotReached)
{
    RanksOnGpus ranks({"", ""});
    for (int rank = 0; rank < 2; ++rank) {
        ranks.start(rank);
    }
    ControlPage::Slot &offered = ranks.group(1).own_slot();
    bool altered = false;
    ASSERT_TRUE(ranks.run([&](int rank) {
        const Progress progress = ranks.peers[rank]->step();
        if (rank == 1 && !altered && offered.offer.seed != 0) {
            altered = true;
            ++offered.offer.seed;
        }
        return progress;
    }));
    expect_the_same(ranks);
    EXPECT_EQ(ranks.group(0).slot(0).reach, 1u);
    EXPECT_EQ(ranks.group(0).slot(1).reach, 3u);
    expect_said_once("", "reads back other bytes");
}

// ---- no trials ----

TEST(PeersTest, WithoutControlPagesNobodyTries)
{
    RanksOnGpus ranks({"", ""});
    ranks.forget_pages();
    const test::CallCount allocated("cuMemAlloc");
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_FALSE(ranks.peers[0]->found().maps);
    EXPECT_EQ(ranks.peers[0]->found().ranks.query.ranks_per_gpu, 2);
    EXPECT_EQ(allocated.get(), 0u);
    EXPECT_TRUE(said(kUnshared).empty());
}

// ---- tables ----

std::string table_for_driver(const std::string &name)
{
    return R"({"rule_file_version": 3, "module": "hetcoll",
               "machines": [{"name": "m", "fingerprint": {"driver": ")" +
           name + R"("}}],
               "collectives": {"allreduce": [{"machine": "m", "rules": [{"alg": "ring"}]}]}})";
}

TEST(PeersTest, ATableForOtherMachinesIsNotUsedAndOneRankSaysSo)
{
    const File file(table_for_driver("another"));
    RanksOnGpus ranks({"", "", ""}, [&](int, hetcoll_settings &settings) {
        settings.tuning_table = file.path();
    });
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_EQ(said(kNoTable).size(), 1u);
}

TEST(PeersTest, ATableIsUsedIfAllRanksHaveReadIt)
{
    const File file(table_for_driver("emulated"));
    RanksOnGpus ranks(
        {"", ""}, [&](int, hetcoll_settings &settings) { settings.tuning_table = file.path(); });
    ASSERT_TRUE(ranks.find_peers());
    EXPECT_TRUE(ranks.peers[1]->found().table);
    ranks.allow({.mapping = true, .tables = false});
    ASSERT_TRUE(ranks.find_peers());
    expect_the_same(ranks);
    EXPECT_TRUE(said(kNoTable).empty());
}

// ---- the network fails ----

TEST(PeersTest, ReportsTheCodeOfAFailedSend)
{
    RanksOnGpus ranks({"", ""});
    ranks.nodes->network.fail_send(1);
    ranks.start(0);
    EXPECT_EQ(ranks.peers[0]->step(), Progress::kFailed);
    EXPECT_EQ(ranks.peers[0]->code(), -7);
    EXPECT_FALSE(ranks.peers[0]->known());
}

TEST(PeersTest, ReportsTheCodeOfAMeetingThatFails)
{
    for (const int nth : {1, 3}) { // two leaders send a message each, to either meeting
        RanksOnGpus ranks({"left", "left", "right", "right"});
        for (int rank = 0; rank < 4; ++rank) {
            ranks.start(rank);
        }
        ranks.nodes->network.fail_send(4 + nth); // four to the exchange are still to come
        int failed = -1;
        for (int turn = 0; turn < 100000 && failed < 0; ++turn) {
            for (int rank = 0; rank < 4 && failed < 0; ++rank) {
                failed = ranks.peers[rank]->step() == Progress::kFailed ? rank : -1;
            }
            ranks.deliver();
        }
        ASSERT_GE(failed, 0);
        EXPECT_EQ(ranks.peers[failed]->code(), -7);
        EXPECT_FALSE(ranks.peers[failed]->known());
        EXPECT_EQ(ranks.group(failed).meetings(), nth == 1 ? 1u : 2u);
    }
}

} // namespace
} // namespace hetcoll
