// hetcoll_info live reads what others have written.
#include "tools/live_pages.h"

#include "engine/meeting/control_page.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>

namespace hetcoll {
namespace {

constexpr int kRanks = 3;

hetcoll_call two_floats()
{
    hetcoll_call call{};
    call.collective = HETCOLL_ALLREDUCE;
    call.kind = HETCOLL_FLOAT32;
    call.op = HETCOLL_SUM;
    call.span = 8;
    call.dense = 1;
    return call;
}

// The page of a communicator of four whose ranks 0, 2 and 3 are this process; rank 2 has not come
// to the last meeting.
class LivePageTest : public ::testing::Test {
protected:
    LivePageTest()
        : self_(*process_start_time(getpid())),
          page_(std::move(
              *SharedPage::create({.host = 1, .start_time = self_, .pid = getpid(), .reserved = 0},
                                  ControlPage::bytes(kRanks))))
    {
        for (int local = 0; local < kRanks; ++local) {
            ControlPage::Slot &slot = page_.slot(local);
            slot.who = {.layout = ControlPage::kLayout,
                        .process = {.host = 1, .start_time = self_, .pid = getpid(), .reserved = 0},
                        .rank = local == 0 ? 0 : local + 1,
                        .ranks = 4,
                        .node_ranks = kRanks,
                        .comm_id = 7};
            const std::uint32_t meeting = local == 1 ? 8 : 9;
            slot.call[meeting % 2] = signature_of(two_floats());
            slot.call_number[meeting % 2] = meeting - 2;
            slot.arrived = meeting;
        }
    }
    [[nodiscard]] int fd() { return page_.memory().ticket().fd; }
    [[nodiscard]] Result<LivePage> read() { return read_live_page(fd(), getpid()); }
    // A slot's bytes, as others may overwrite them.
    [[nodiscard]] std::byte *bytes(int local)
    {
        return static_cast<std::byte *>(page_.memory().data()) + local * sizeof(ControlPage::Slot);
    }

    std::uint64_t self_;
    ControlPage page_;
};

TEST_F(LivePageTest, ShowsWhereEachRankIs)
{
    const auto page = read();
    ASSERT_TRUE(page.ok()) << page.status().message();
    EXPECT_EQ(page->comm_id, 7u);
    EXPECT_EQ(page->ranks, 4);
    EXPECT_EQ(page->last_meeting(), 9u);
    ASSERT_EQ(page->here.size(), 3u);
    const LiveRank &late = page->here[1];
    EXPECT_EQ(late.rank, 2);
    EXPECT_EQ(late.meeting, 8u);
    EXPECT_EQ(late.call_number, 6u);
    EXPECT_EQ(late.call, signature_of(two_floats()));
    EXPECT_FALSE(late.looked_s_ago);
    EXPECT_EQ(late.process.pid, getpid());
    EXPECT_TRUE(LivePage::is_behind(late.meeting, page->last_meeting()));
    EXPECT_FALSE(LivePage::is_behind(page->here[2].meeting, page->last_meeting()));
}

TEST_F(LivePageTest, NumbersOfMeetingsMayWrap)
{
    page_.slot(0).arrived = 0;
    page_.slot(1).arrived = 0xffff'ffff;
    page_.slot(2).arrived = 0;
    const auto page = read();
    ASSERT_TRUE(page.ok());
    EXPECT_EQ(page->last_meeting(), 0u);
    EXPECT_TRUE(LivePage::is_behind(page->here[1].meeting, page->last_meeting()));
}

TEST_F(LivePageTest, IsFoundByAnyOfItsProcesses)
{
    const auto pages = find_live_pages(getpid());
    ASSERT_TRUE(pages.ok()) << pages.status().message();
    ASSERT_EQ(pages->size(), 1u);
    EXPECT_EQ(pages->front().comm_id, 7u);
}

TEST_F(LivePageTest, OfAnotherVersionIsNotRead)
{
    page_.slot(0).who.layout += 1;
    EXPECT_EQ(read().status().code(), Errc::kUnsupported);
    const auto found = find_live_pages(getpid());
    ASSERT_FALSE(found.ok());
    EXPECT_NE(found.status().message().find("of another version of hetcoll"), std::string::npos)
        << found.status().message();
}

TEST_F(LivePageTest, OfAnotherLengthIsNotRead)
{
    for (const int ranks : {-1, 0, 1, 2, 4, 1 << 30}) {
        page_.slot(0).who.node_ranks = ranks;
        EXPECT_EQ(read().status().code(), Errc::kInvalid) << ranks;
    }
    page_.slot(0).who.node_ranks = kRanks;
    ASSERT_EQ(ftruncate(fd(), 1000), 0); // nobody may touch the page any more
    EXPECT_EQ(read().status().code(), Errc::kInvalid);
}

TEST_F(LivePageTest, ForeignBytesAreNotTaken)
{
    std::mt19937 random(1);
    int read_pages = 0;
    std::byte good[kRanks][512];
    for (int local = 0; local < kRanks; ++local) {
        std::memcpy(good[local], bytes(local), sizeof good[local]);
    }
    for (int round = 0; round < 20000; ++round) {
        const int local = static_cast<int>(random() % kRanks);
        for (unsigned n = 0; n < 1 + random() % 8; ++n) {
            bytes(local)[random() % sizeof good[local]] = static_cast<std::byte>(random());
        }
        const auto page = read();
        if (page.ok()) {
            ++read_pages;
            for (const LiveRank &rank : page->here) {
                EXPECT_GE(rank.rank, 0);
                EXPECT_LT(rank.rank, page->ranks);
                EXPECT_GT(rank.process.pid, 0);
                EXPECT_TRUE(!rank.call || describe(*rank.call).text[0] != '\0');
            }
        }
        std::memcpy(bytes(local), good[local], sizeof good[local]);
    }
    EXPECT_GT(read_pages, 100); // the other bytes are of no importance
}

TEST_F(LivePageTest, ACallThatIsNoneIsNotShown)
{
    for (const std::uint64_t what :
         {0x7f00ull << 48, 0x0100ull << 48 | 30ull << kKindShift,
          0x0100ull << 48 | 31ull << kKindShift | 13ull << kOpShift, ~0ull}) {
        page_.slot(0).call[1].what = what;
        const auto page = read();
        ASSERT_TRUE(page.ok());
        EXPECT_EQ(page->here[0].call.has_value(), is_signature({what, 0})) << what;
    }
    EXPECT_FALSE(is_signature({0x7f00ull << 48, 0}));
    EXPECT_FALSE(is_signature({0x0100ull << 48 | 30ull << kKindShift, 0}));
    EXPECT_TRUE(is_signature({}));
    EXPECT_TRUE(is_signature(signature_of(two_floats())));
}

std::string problem_with(int pid)
{
    const auto found = find_live_pages(pid);
    return found.ok() ? std::string("none") : found.status().message();
}

TEST(LivePages, WhoCannotBeShownIsNamed)
{
    EXPECT_NE(problem_with(getpid()).find("has no communicator to show"), std::string::npos);
    const pid_t ended = fork();
    if (ended == 0) {
        _exit(0);
    }
    waitpid(ended, nullptr, 0);
    EXPECT_NE(problem_with(ended).find("there is no process"), std::string::npos);
    const pid_t other = fork(); // init is root's
    if (other == 0) {
        const bool is_other = geteuid() != 0 || seteuid(65534) == 0;
        _exit(!is_other ||
              problem_with(1).find("is user 0's, and only that user") == std::string::npos);
    }
    int status = 1;
    waitpid(other, &status, 0);
    EXPECT_EQ(status, 0);
}

} // namespace
} // namespace hetcoll
