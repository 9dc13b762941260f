#include "engine/meeting/exchange.h"

#include "engine_flag_names.h"
#include "memory_network.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hetcoll {
namespace {

using Message = std::vector<std::byte>;

// One exchange on every rank. Each rank's payload is `count` 64-bit integers.
struct Ranks {
    Ranks(int size, std::size_t count, bool synchronous, unsigned seed)
        : network(size, synchronous, seed), exchange(size),
          mine(size, Message(8 * count + Exchange::kFlagBytes)), theirs(mine)
    {
    }

    // Until all are done or failed, or nobody moves any more.
    std::vector<Progress> run()
    {
        std::vector<Progress> progress(exchange.size(), Progress::kPending);
        for (int turn = 0; turn < 100000; ++turn) {
            bool pending = false;
            for (std::size_t rank = 0; rank < exchange.size(); ++rank) {
                if (progress[rank] == Progress::kPending) {
                    progress[rank] = exchange[rank].step();
                    pending = true;
                }
            }
            if (!pending) {
                break;
            }
            network.rank(0).progress(network.rank(0).context);
        }
        return progress;
    }

    MemoryNetwork network;
    std::vector<Exchange> exchange;
    std::vector<Message> mine, theirs;
};

class ExchangeTest : public ::testing::TestWithParam<int> {}; // the number of ranks

TEST_P(ExchangeTest, EveryRankGetsAllFlagsAndTheSum)
{
    const int size = GetParam();
    const HostReduce sum = host_reduce(ReduceOp::kSum, ElementKind::kInt64);
    for (const std::size_t count : {0, 1, 3, 1000}) {
        for (const bool synchronous : {false, true}) {
            for (int first = 0; first < size;
                 first += 16) { // sixteen ranks with a flag each at a time
                Ranks ranks(size, count, synchronous, size + 1);
                Flags all{};
                for (int rank = 0; rank < size; ++rank) {
                    const int bit = rank - first;
                    const auto flag = static_cast<Flags>(bit >= 0 && bit < 16 ? 1 << bit : 0);
                    all |= flag;
                    for (std::size_t i = 0; i < count; ++i) {
                        const std::int64_t part = (rank + 1) * static_cast<std::int64_t>(i + 1);
                        std::memcpy(&ranks.mine[rank][8 * i], &part, 8);
                    }
                    ranks.exchange[rank].start(ranks.network.rank(rank), 1, ranks.mine[rank].data(),
                                               ranks.theirs[rank].data(), 8 * count, count,
                                               count == 0 ? nullptr : sum, flag);
                }
                const auto progress = ranks.run();
                for (int rank = 0; rank < size; ++rank) {
                    ASSERT_EQ(progress[rank], Progress::kDone) << rank << " of " << size;
                    EXPECT_EQ(ranks.exchange[rank].flags(), all);
                    for (std::size_t i = 0; i < count; ++i) {
                        std::int64_t result;
                        std::memcpy(&result, &ranks.mine[rank][8 * i], 8);
                        ASSERT_EQ(result, std::int64_t{size} * (size + 1) / 2 *
                                              static_cast<std::int64_t>(i + 1));
                    }
                }
                EXPECT_EQ(ranks.network.unmatched(), 0);
            }
        }
    }
}

// Floating-point sums depend on the order; every rank must compute the same expression.
TEST_P(ExchangeTest, EveryRankGetsTheSameBits)
{
    const int size = GetParam();
    Ranks ranks(size, 1, false, 7);
    for (int rank = 0; rank < size; ++rank) {
        const double part = 1.0 / (rank + 3);
        std::memcpy(&ranks.mine[rank][0], &part, 8);
        ranks.exchange[rank].start(ranks.network.rank(rank), 1, ranks.mine[rank].data(),
                                   ranks.theirs[rank].data(), 8, 1,
                                   host_reduce(ReduceOp::kSum, ElementKind::kFloat64), Flags{});
    }
    ranks.run();
    for (int rank = 1; rank < size; ++rank) {
        EXPECT_EQ(ranks.mine[rank], ranks.mine[0]) << rank << " of " << size;
    }
}

// The flags lie behind the payload, at whatever address that is.
TEST_P(ExchangeTest, CarriesFlagsBehindAnOddNumberOfBytes)
{
    const int size = GetParam();
    Ranks ranks(size, 1, false, 5);
    for (int rank = 0; rank < size; ++rank) {
        for (int i = 0; i < 3; ++i) {
            ranks.mine[rank][i] = std::byte{1};
        }
        ranks.exchange[rank].start(ranks.network.rank(rank), 1, ranks.mine[rank].data(),
                                   ranks.theirs[rank].data(), 3, 3,
                                   host_reduce(ReduceOp::kSum, ElementKind::kUint8),
                                   rank == size - 1 ? Flags{0x8001} : Flags{});
    }
    ranks.run();
    for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(ranks.exchange[rank].flags(), Flags{0x8001}) << rank << " of " << size;
        for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(ranks.mine[rank][i], std::byte(size)) << rank << " of " << size;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangeTest,
                         ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 33));

TEST(Exchange, EightBytesTravelInHalfACacheLine)
{
    constexpr std::size_t kHeaders = 22; // Open MPI's, in shared memory
    EXPECT_LE(8 + Exchange::kFlagBytes + kHeaders, 32u);
}

TEST(Exchange, ReportsTheCodeOfAFailedSend)
{
    Ranks ranks(2, 0, false, 1);
    ranks.network.fail_send(1);
    for (int rank = 0; rank < 2; ++rank) {
        ranks.exchange[rank].start(ranks.network.rank(rank), 1, ranks.mine[rank].data(),
                                   ranks.theirs[rank].data(), 0, 0, nullptr, Flags{});
    }
    EXPECT_EQ(ranks.exchange[0].step(), Progress::kFailed);
    EXPECT_EQ(ranks.exchange[0].code(), -7);
}

} // namespace
} // namespace hetcoll
