// coll_hetcoll_verbose: what is told of a communicator's calls, and how often.
#include "engine/communicator/story.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hetcoll {
namespace {

constexpr std::size_t kSmallLimit = 8192;
std::vector<std::string> logged;

Log capture(int verbose)
{
    logged.clear();
    return {[](int, const char *line) { logged.emplace_back(line); }, verbose};
}

CallRecord call_of(std::size_t bytes)
{
    CallRecord record;
    record.comm_id = 5;
    record.comm_size = 8;
    record.bytes = bytes;
    record.served = HETCOLL_CALLS_OF(Algorithm::kRing);
    record.bounced = true;
    record.chunk_bytes = 65536;
    return record;
}

TEST(StoryTest, TheFirstLargerCallIsToldOnce)
{
    Story story;
    const Log log = capture(1);
    for (const std::size_t bytes : {8, 8192, 8193, 100'000}) {
        story.tell(log, call_of(bytes), kSmallLimit);
    }
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_EQ(logged[0], "hetcoll: communicator of 8 ranks: allreduce of 8193 bytes by ring, "
                         "path bounce, in chunks of 65536 bytes");
}

TEST(StoryTest, LevelTwoTellsCommunicatorsApart)
{
    Story story;
    story.tell(capture(2), call_of(100'000), kSmallLimit);
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_EQ(logged[0], "hetcoll: communicator 5 of 8 ranks: allreduce of 100000 bytes by ring, "
                         "path bounce, in chunks of 65536 bytes");
}

TEST(StoryTest, OnlyRankZeroTells)
{
    Story story;
    CallRecord record = call_of(100'000);
    record.rank = 1;
    story.tell(capture(2), record, kSmallLimit);
    EXPECT_TRUE(logged.empty());
}

TEST(StoryTest, LevelTwoHasALineForEachKindOfCall)
{
    Story story;
    const Log log = capture(2);
    for (int round = 0; round < 3; ++round) {
        for (const std::size_t bytes : {1000, 1024, 1025, 100'000}) {
            story.tell(log, call_of(bytes), kSmallLimit);
        }
        CallRecord mapped = call_of(100'000);
        mapped.bounced = false;
        mapped.mapped = true;
        story.tell(log, mapped, kSmallLimit);
    }
    EXPECT_EQ(logged.size(), 4u); // up to 1K, up to 2K, up to 128K by each path
}

TEST(StoryTest, KindsWithoutEndAreNotToldForEver)
{
    Story story;
    const Log log = capture(2);
    std::vector<std::string> names;
    for (int i = 0; i < 1000; ++i) {
        names.push_back("call" + std::to_string(i));
    }
    for (const std::string &name : names) {
        CallRecord record = call_of(8);
        record.call = name.c_str();
        story.tell(log, record, kSmallLimit);
    }
    EXPECT_EQ(logged.size(), 256u);
}

} // namespace
} // namespace hetcoll
