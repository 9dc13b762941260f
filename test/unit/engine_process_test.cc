#include "engine/process/process.h"

#include "engine_process.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>

namespace hetcoll {
namespace {

using test::default_settings;
using test::make_process;
using test::take_log;

// A setting that is wrong, and what is said of it.
struct Wrong {
    const char *name;
    void (*set)(hetcoll_settings &settings);
    const char *message;
};

class WrongSettingTest : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongSettingTest, IsRefusedWithWhatItMayBe)
{
    hetcoll_settings settings = default_settings();
    GetParam().set(settings);
    const auto process = Process::create(settings);
    ASSERT_FALSE(process.ok());
    EXPECT_EQ(process.status().code(), Errc::kInvalid);
    EXPECT_EQ(process.status().message(), GetParam().message);
}

constexpr Wrong kWrong[] = {
    {"Shares", [](hetcoll_settings &s) { s.shares = "1,x"; },
     "coll_hetcoll_shares '1,x' is unknown, write off, auto, or a whole number of up to 1000000 "
     "for each rank, not all of them 0, as 3,3,0,2"},
    {"SmallLimit", [](hetcoll_settings &s) { s.small_limit = 16385; },
     "coll_hetcoll_small_limit 16385 is too large, write at most 16384"},
    {"ChunkBytes", [](hetcoll_settings &s) { s.chunk_bytes = 4095; },
     "coll_hetcoll_chunk_bytes 4095 is too small, write at least 4096, or 0 to choose"},
    {"FixedPoint", [](hetcoll_settings &s) { s.fixed_point = -1; },
     "coll_hetcoll_fixed_point -1 is too small, write at least 1, or 0 for sums as floats"},
    {"MaxMemory", [](hetcoll_settings &s) { s.max_memory = 262143; },
     "coll_hetcoll_max_memory 262143 is too small, write at least 262144, or 0 for no bound"},
    {"AggregatorPort", [](hetcoll_settings &s) { s.aggregators = "server"; },
     "coll_hetcoll_aggregators: aggregator 'server' has no port: write host:port or [IPv6 "
     "address]:port"},
    {"AggregatorWindow",
     [](hetcoll_settings &s) {
         s.aggregators = "server:1";
         s.aggregator_window = 65;
     },
     "coll_hetcoll_aggregator_window 65 is too large, write at most 64"},
    {"AggregatorCopy",
     [](hetcoll_settings &s) {
         s.aggregators = "server:1";
         s.aggregator_copy = 65535;
     },
     "coll_hetcoll_aggregator_copy 65535 is too small, write at least 65536"},
};
INSTANTIATE_TEST_SUITE_P(Settings, WrongSettingTest, ::testing::ValuesIn(kWrong),
                         [](const auto &param) { return param.param.name; });

TEST(ProcessTest, AnUnknownAlgorithmIsRefusedByName)
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = "quick";
    const auto process = Process::create(settings);
    ASSERT_FALSE(process.ok());
    EXPECT_EQ(process.status().message().rfind("coll_hetcoll_algorithm 'quick' is unknown", 0), 0u)
        << process.status().message();
}

TEST(ProcessTest, FactsStayWhatTheyWereWhenTheProcessWasMade)
{
    const auto process = make_process(default_settings());
    const hetcoll_facts before = process->facts();
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    const hetcoll_facts after = process->facts();
    unsetenv("CUDA_VISIBLE_DEVICES");
    EXPECT_EQ(std::memcmp(&before, &after, sizeof before), 0);
}

TEST(ProcessTest, FactsAreWhatTheUserHasSet)
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = "two_shot";
    settings.chunk_bytes = 65536;
    settings.adapt_chunk = settings.skew = settings.reproducible = true;
    settings.fixed_point = 20;
    settings.accumulate = HETCOLL_ACCUMULATE_ELEMENT;
    settings.shares = "auto";
    const hetcoll_facts facts = make_process(settings)->facts();
    EXPECT_EQ(facts.protocol, HETCOLL_PROTOCOL);
    EXPECT_EQ(facts.may_have_gpu, 1u);
    EXPECT_EQ(facts.small_limit, hetcoll_default_settings().small_limit);
    EXPECT_EQ(facts.chunk_bytes, 65536u);
    EXPECT_EQ(facts.algorithm, 1 + static_cast<std::uint32_t>(Algorithm::kTwoShot));
    EXPECT_EQ(facts.priority, 95u);
    EXPECT_EQ(facts.ipc, 1u);
    EXPECT_EQ(facts.adapt_chunk, 1u);
    EXPECT_EQ(facts.reproducible, 1u);
    EXPECT_EQ(facts.fixed_point, 20u);
    EXPECT_EQ(facts.accumulate, 1u);
    EXPECT_EQ(facts.slot_bytes, 512u << 10);
    EXPECT_EQ(facts.collectives, 1u);
    EXPECT_EQ(facts.skew, 1u);
    EXPECT_EQ(facts.tuning_table, 0u);
    EXPECT_EQ(facts.user_ops, 0u);
    EXPECT_EQ(facts.shares, 1u);
    EXPECT_EQ(facts.aggregators, 0u);
    EXPECT_EQ(facts.identity.pid, getpid());
}

TEST(ProcessTest, KeepsNoStringOfTheCaller)
{
    const auto process = make_process();
    const hetcoll_settings &kept = process->settings();
    for (const char *text :
         {kept.algorithm, kept.node, kept.topology_file, kept.tuning_table, kept.trace, kept.shares,
          kept.user_ops, kept.aggregators, kept.aggregator_key}) {
        EXPECT_EQ(text, nullptr);
    }
    EXPECT_EQ(kept.small_limit, hetcoll_default_settings().small_limit);
}

TEST(ProcessTest, RanksWithOtherWordsAreOnOtherNodesOfOneMachine)
{
    hetcoll_settings settings = default_settings();
    const auto plain = make_process(settings);
    settings.node = "left";
    const auto left = make_process(settings);
    EXPECT_FALSE(plain->place().has_node_word());
    EXPECT_TRUE(left->place().has_node_word());
    EXPECT_NE(left->place().process().host, plain->place().process().host);
    EXPECT_EQ(left->place().identity().machine, plain->place().identity().machine);
}

TEST(ProcessTest, OnlyTheFirstRankOfANodeSpeaksForTheNode)
{
    hetcoll_settings settings = default_settings();
    settings.local_rank = 1;
    const auto second = make_process(settings);
    EXPECT_TRUE(second->log().enabled(1));
    EXPECT_FALSE(second->node_log().enabled(0));
    EXPECT_TRUE(make_process()->node_log().enabled(0));
}

TEST(ProcessTest, ATraceThatCannotBeWrittenEndsNoJob)
{
    hetcoll_settings settings = default_settings();
    settings.trace = "/nowhere/trace";
    take_log();
    const auto process = make_process(settings);
    ASSERT_NE(process, nullptr);
    EXPECT_EQ(process->trace(), nullptr);
    const auto log = take_log();
    ASSERT_FALSE(log.empty());
    EXPECT_EQ(log[0].rfind("0 hetcoll: no trace of rank 0: ", 0), 0u) << log[0];
}

TEST(ProcessTest, ATuningTableThatCannotBeReadIsLeftOut)
{
    hetcoll_settings settings = default_settings();
    settings.tuning_table = "/nowhere/table.json";
    take_log();
    const auto process = make_process(settings);
    EXPECT_EQ(process->tuning().table(), nullptr);
    EXPECT_EQ(process->facts().tuning_table, 0u);
    const auto log = take_log();
    ASSERT_FALSE(log.empty());
    EXPECT_EQ(log[0].rfind("0 hetcoll ignores its tuning table and chooses algorithms by price: "
                           "/nowhere/table.json",
                           0),
              0u)
        << log[0];
}

// ---- aggregators ----

class AggregatorListTest : public ::testing::Test {
protected:
    AggregatorListTest()
    {
        std::ofstream(key_) << "0123456789abcdef0123456789abcdef\n";
        chmod(key_.c_str(), 0600);
        settings_.aggregators = "left:7001,right:7002";
        settings_.aggregator_key = key_.c_str();
        settings_.aggregator_rdma = "mlx5_0:1";
    }
    ~AggregatorListTest() override { unlink(key_.c_str()); }

    const std::string key_ = ::testing::TempDir() + "hetcoll_key." + std::to_string(getpid());
    hetcoll_settings settings_ = default_settings();
};

TEST_F(AggregatorListTest, HasAllThatTheUserHasSet)
{
    const auto process = make_process(settings_);
    const AggregatorList *list = process->aggregators().list();
    ASSERT_NE(list, nullptr);
    ASSERT_EQ(list->endpoints.size(), 2u);
    EXPECT_EQ(list->endpoints[1].text(), "right:7002");
    EXPECT_EQ(list->key.secret, "0123456789abcdef0123456789abcdef");
    EXPECT_EQ(list->key.name, kDefaultKeyName);
    EXPECT_EQ(list->rdma, "mlx5_0:1");
    EXPECT_EQ(list->window, 8);
    EXPECT_EQ(list->copy_bytes, std::size_t{16} << 20);
    EXPECT_NE(list->hash, 0u);
    EXPECT_EQ(process->facts().aggregators, list->hash);
}

TEST_F(AggregatorListTest, RanksTellDifferentListsApartButNotKeys)
{
    const std::uint64_t first = make_process(settings_)->facts().aggregators;
    EXPECT_EQ(make_process(settings_)->facts().aggregators, first);
    hetcoll_settings other = settings_;
    other.aggregator_window = 9;
    EXPECT_NE(make_process(other)->facts().aggregators, first);
    other = settings_;
    other.aggregators = "left:7001,right:7003";
    EXPECT_NE(make_process(other)->facts().aggregators, first);
    std::ofstream(key_) << "another key of enough bytes\n";
    EXPECT_EQ(make_process(settings_)->facts().aggregators, first);
}

TEST_F(AggregatorListTest, WithoutAKeyThereIsNone)
{
    settings_.aggregator_key = "";
    take_log();
    const auto process = make_process(settings_);
    EXPECT_EQ(process->aggregators().list(), nullptr);
    EXPECT_EQ(process->facts().aggregators, 0u);
    EXPECT_EQ(take_log()[0],
              "0 hetcoll uses no aggregators: coll_hetcoll_aggregator_key names no file");
}

TEST_F(AggregatorListTest, AFailureIsRemembered)
{
    const auto process = make_process(settings_);
    EXPECT_FALSE(process->aggregators().have_failed());
    process->aggregators().note_failed();
    EXPECT_TRUE(process->aggregators().have_failed());
}

// ---- topology file, notices ----

TEST(TopologyFileTest, ThereIsNoneWithoutAName)
{
    for (const char *name : {static_cast<const char *>(nullptr), ""}) {
        TopologyFile file(name);
        auto read = file.get();
        ASSERT_TRUE(read.ok());
        EXPECT_EQ(*read, nullptr);
    }
}

TEST(TopologyFileTest, AnErrorStays)
{
    const std::string name = ::testing::TempDir() + "hetcoll_topology." + std::to_string(getpid());
    TopologyFile file(name.c_str());
    const auto first = file.get();
    ASSERT_FALSE(first.ok());
    EXPECT_NE(first.status().message().find(name), std::string::npos) << first.status().message();
    std::ofstream(name) << "# too late\n";
    const auto second = file.get();
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().message(), first.status().message());
    unlink(name.c_str());
}

TEST(NoticesTest, EachIsSaidOnce)
{
    Notices notices;
    EXPECT_TRUE(notices.first_time(Notice::kStaged));
    EXPECT_FALSE(notices.first_time(Notice::kStaged));
    EXPECT_TRUE(notices.first_time(Notice::kSplitMachine));
    EXPECT_TRUE(notices.first_time(Notice::kTablesDiffer));
    EXPECT_FALSE(notices.first_time(Notice::kSplitMachine));
}

} // namespace
} // namespace hetcoll
