#include "engine/process/counters.h"

#include "engine/meeting/flags.h"
#include "engine/process/trace.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <string>

namespace hetcoll {
namespace {

TEST(CountersTest, StartAtZeroAndAdd)
{
    Counters counters(nullptr);
    EXPECT_EQ(counters.counter(HETCOLL_AGREEMENTS), 0u);
    counters.count(HETCOLL_AGREEMENTS);
    counters.count(HETCOLL_AGREEMENTS, 41);
    EXPECT_EQ(counters.counter(HETCOLL_AGREEMENTS), 42u);
    EXPECT_EQ(counters.counter(HETCOLL_ALLOCATIONS), 0u);
}

TEST(CountersTest, ALevelIsWhatItWasSetToLast)
{
    Counters counters(nullptr);
    counters.set(HETCOLL_LATE_RANK, 3);
    counters.set(HETCOLL_LATE_RANK, 2);
    EXPECT_EQ(counters.counter(HETCOLL_LATE_RANK), 2u);
}

TEST(CountersTest, ACallsTimeGoesToWhatServedItAndToItsPath)
{
    Counters counters(nullptr);
    CallRecord record;
    record.served = HETCOLL_CALLS_TWO_SHOT;
    record.mapped = true;
    record.ns = 700;
    counters.observe(record);
    record.mapped = false;
    record.bounced = true;
    record.ns = 50;
    counters.observe(record);
    EXPECT_EQ(counters.counter(HETCOLL_NS_TWO_SHOT), 750u);
    EXPECT_EQ(counters.counter(HETCOLL_NS_PATH_MAPPED), 700u);
    EXPECT_EQ(counters.counter(HETCOLL_NS_PATH_BOUNCE), 50u);
    EXPECT_EQ(counters.counter(HETCOLL_CALLS_TWO_SHOT), 0u); // counted by the operation
}

hetcoll_ended_call last_ended;

TEST(CountersTest, WhoeverAsksIsToldOfACall)
{
    Counters counters(nullptr, [](const hetcoll_ended_call *call) { last_ended = *call; });
    CallRecord record;
    record.served = HETCOLL_CALLS_TWO_SHOT;
    record.mapped = true;
    record.bytes = 4096;
    record.ns = 700;
    record.failed = true;
    counters.observe(record);
    EXPECT_EQ(last_ended.bytes, 4096u);
    EXPECT_EQ(last_ended.ns, 700u);
    EXPECT_EQ(last_ended.counter, HETCOLL_CALLS_TWO_SHOT);
    EXPECT_EQ(last_ended.path, static_cast<int>(CallPath::kMapped));
    EXPECT_NE(last_ended.failed, 0);
    record.bytes = 8;
    counters.tell(record); // of a call that is counted elsewhere
    EXPECT_EQ(last_ended.bytes, 8u);
    EXPECT_EQ(counters.counter(HETCOLL_NS_TWO_SHOT), 700u);
}

TEST(CountersTest, OtherCollectivesAreToldOfAsTheyAreCounted)
{
    const Counters counters(nullptr, [](const hetcoll_ended_call *call) { last_ended = *call; });
    CallRecord own;
    own.schedule = "ring";
    counters.tell(own);
    EXPECT_EQ(last_ended.counter, HETCOLL_CALLS_COLLECTIVE);
    CallRecord staged;
    staged.served = HETCOLL_CALLS_STAGED;
    staged.staged_reason = HETCOLL_REASON_COLLECTIVE;
    counters.tell(staged);
    EXPECT_EQ(last_ended.counter, HETCOLL_STAGED_COLLECTIVE);
    counters.tell({});
    EXPECT_LT(last_ended.counter, 0);
}

TEST(CountersTest, ThePathsOfAnEndedCallHaveTheNamesOfATrace)
{
    std::string paths;
    for (int path = 0; path <= static_cast<int>(CallPath::kHost); ++path) {
        paths += (path == 0 ? "" : ", ") + std::to_string(path) + " " +
                 path_name(static_cast<CallPath>(path));
    }
    EXPECT_EQ(paths, HETCOLL_PATHS);
}

TEST(CountersTest, ASmallCallHasATimeAndNoPath)
{
    Counters counters(nullptr);
    CallRecord record;
    record.served = HETCOLL_CALLS_HOST;
    record.ns = 5;
    counters.observe(record);
    EXPECT_EQ(counters.counter(HETCOLL_NS_HOST), 5u);
    for (const hetcoll_counter path : {HETCOLL_NS_PATH_BOUNCE, HETCOLL_NS_PATH_DIRECT,
                                       HETCOLL_NS_PATH_MAPPED, HETCOLL_NS_PATH_MIXED}) {
        EXPECT_EQ(counters.counter(path), 0u);
    }
}

TEST(CountersTest, ACallThatNobodyServedHasNoTime)
{
    Counters counters(nullptr);
    CallRecord record;
    record.ns = 5;
    record.failed = true;
    counters.observe(record);
    for (int counter = 0; counter < HETCOLL_COUNTER_COUNT; ++counter) {
        EXPECT_EQ(counters.counter(static_cast<hetcoll_counter>(counter)), 0u) << counter;
    }
}

TEST(CountersTest, EveryObservedCallIsALineOfTheTrace)
{
    const std::string path = ::testing::TempDir() + "hetcoll_counters." + std::to_string(getpid());
    {
        auto trace = Trace::open(path + ".%r", 0, Log{});
        ASSERT_TRUE(trace.ok()) << trace.status().message();
        Counters counters(trace->get());
        CallRecord record;
        record.memory = kHostMemory;
        counters.observe(record);
        counters.observe(record);
    }
    std::ifstream file(path + ".0");
    int lines = 0;
    for (std::string line; std::getline(file, line);) {
        ++lines;
    }
    EXPECT_EQ(lines, 2);
    unlink((path + ".0").c_str());
}

TEST(CountersTest, SmallCallsAreTimedWhileSomebodyLooks)
{
    Counters counters(nullptr);
    EXPECT_FALSE(counters.times_small());
    counters.time_small(1);
    counters.time_small(1);
    counters.time_small(-1);
    EXPECT_TRUE(counters.times_small());
    counters.time_small(-1);
    EXPECT_FALSE(counters.times_small());
}

TEST(CountersTest, SmallCallsOfCommunicatorsCountWhileTheyLiveAndAfter)
{
    Counters counters(nullptr);
    std::atomic<std::uint64_t> first{3}, second{4};
    counters.count(HETCOLL_CALLS_HOST, 10);
    counters.add_small_calls(first);
    counters.add_small_calls(second);
    EXPECT_EQ(counters.counter(HETCOLL_CALLS_HOST), 17u);
    first = 5;
    counters.remove_small_calls(first);
    first = 1000;
    EXPECT_EQ(counters.counter(HETCOLL_CALLS_HOST), 19u);
    counters.remove_small_calls(second);
}

TEST(CountersTest, WhatSomebodyElseKeepsIsReadThere)
{
    Counters counters(nullptr);
    std::uint64_t kept = 7;
    counters.take_from(HETCOLL_MAPPINGS, [&kept] { return kept; });
    EXPECT_EQ(counters.counter(HETCOLL_MAPPINGS), 7u);
    kept = 8;
    EXPECT_EQ(counters.counter(HETCOLL_MAPPINGS), 8u);
}

} // namespace
} // namespace hetcoll
