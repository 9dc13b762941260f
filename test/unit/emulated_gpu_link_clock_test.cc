// The link model's arithmetic, in a time of the tests' own.
#include "emulated_gpu/link_clock.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hetcoll::test {
namespace {

using emulated_gpu::LinkClock;
using emulated_gpu::LinkOfPath;
using emulated_gpu::Transfer;

constexpr std::uint64_t kMs = 1'000'000, kStart = 7'000'000'000;

// Transfers of different processes: each books when its last part has passed.
void run(std::vector<Transfer> &transfers)
{
    while (true) {
        Transfer *next = nullptr;
        for (Transfer &transfer : transfers) {
            if (!transfer.is_booked() &&
                (next == nullptr || transfer.passed_ns() < next->passed_ns())) {
                next = &transfer;
            }
        }
        if (next == nullptr) {
            return;
        }
        next->book();
    }
}

TEST(EmulatedLinkClockTest, ABookingStartsWhenTheLinkIsFree)
{
    LinkClock clock;
    EXPECT_EQ(clock.book(100, 10), 110u);
    EXPECT_EQ(clock.book(100, 10), 120u);
    EXPECT_EQ(clock.book(500, 10), 510u); // idle time is not saved up
    EXPECT_EQ(clock.book(0, 10), 520u);
}

TEST(EmulatedTransferTest, ATransferTakesItsBytesAtTheSlowestLinksRate)
{
    LinkClock fast, slow, medium;
    std::vector<Transfer> one;
    one.emplace_back(std::vector<LinkOfPath>{{&fast, 10}, {&slow, 0.25}, {&medium, 1}},
                     std::uint64_t{25'000'000}, kStart);
    run(one);
    EXPECT_EQ(one[0].passed_ns(), kStart + 100 * kMs);
}

TEST(EmulatedTransferTest, NothingToMoveTakesNoTime)
{
    LinkClock link;
    Transfer none({{&link, 1}}, 0, kStart);
    EXPECT_TRUE(none.is_booked());
    EXPECT_EQ(none.passed_ns(), kStart);
}

TEST(EmulatedTransferTest, TransfersShareALinkEvenly)
{
    LinkClock link;
    std::vector<Transfer> transfers;
    for (const std::uint64_t bytes : {10'000'000, 20'000'000, 30'000'000}) {
        transfers.emplace_back(std::vector<LinkOfPath>{{&link, 1}}, bytes, kStart);
    }
    run(transfers);
    // A third of the rate until the first ends, then a half, then all of it.
    EXPECT_NEAR(static_cast<double>(transfers[0].passed_ns() - kStart), 30.0 * kMs, 2.0 * kMs);
    EXPECT_NEAR(static_cast<double>(transfers[1].passed_ns() - kStart), 50.0 * kMs, 2.0 * kMs);
    EXPECT_EQ(transfers[2].passed_ns(), kStart + 60 * kMs); // never more than the rate together
}

TEST(EmulatedTransferTest, OtherDirectionsAndOtherLinksDoNotCount)
{
    LinkClock there, back;
    std::vector<Transfer> transfers;
    transfers.emplace_back(std::vector<LinkOfPath>{{&there, 1}}, 10 * kMs, kStart);
    transfers.emplace_back(std::vector<LinkOfPath>{{&back, 1}}, 10 * kMs, kStart);
    run(transfers);
    EXPECT_EQ(transfers[0].passed_ns(), kStart + 10 * kMs);
    EXPECT_EQ(transfers[1].passed_ns(), kStart + 10 * kMs);
}

TEST(EmulatedTransferTest, ATransferThatIsHeldUpElsewhereLeavesTheRest)
{
    LinkClock shared, narrow;
    std::vector<Transfer> transfers;
    transfers.emplace_back(std::vector<LinkOfPath>{{&shared, 1}}, 80 * kMs, kStart);
    transfers.emplace_back(std::vector<LinkOfPath>{{&shared, 1}, {&narrow, 0.2}}, 20 * kMs, kStart);
    run(transfers);
    EXPECT_NEAR(static_cast<double>(transfers[0].passed_ns() - kStart), 100.0 * kMs, 20.0 * kMs);
    EXPECT_NEAR(static_cast<double>(transfers[1].passed_ns() - kStart), 100.0 * kMs, 20.0 * kMs);
}

TEST(EmulatedTransferTest, ASmallTransferWaitsForAPartNotForTheWhole)
{
    LinkClock link;
    std::vector<Transfer> transfers;
    transfers.emplace_back(std::vector<LinkOfPath>{{&link, 1}}, 1000 * kMs, kStart);
    transfers.emplace_back(std::vector<LinkOfPath>{{&link, 1}}, 1000, kStart + 500 * kMs);
    run(transfers);
    EXPECT_LE(transfers[1].passed_ns(), kStart + 502 * kMs);
}

TEST(EmulatedTransferTest, WhoBooksLateLosesNothingOnAnIdleLink)
{
    LinkClock link;
    Transfer transfer({{&link, 1}}, 3 * kMs, kStart);
    transfer.book();
    // Wakes up long after passed_ns(): the clock is not told, so the link was used in between.
    transfer.book();
    transfer.book();
    EXPECT_TRUE(transfer.is_booked());
    EXPECT_EQ(transfer.passed_ns(), kStart + 3 * kMs);
}

} // namespace
} // namespace hetcoll::test
