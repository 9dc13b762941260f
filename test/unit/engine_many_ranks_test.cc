// Dozens of ranks on one node: as many as share their memory, and one more.
#include "engine/communicator/mapped_call.h"
#include "test/unit/engine_communicators.h"
#include "test/unit/engine_ranks.h"

#include <cstdlib>

namespace hetcoll::test {
namespace {

// Reading the real machine for each rank takes long.
class SmallMachine {
public:
    SmallMachine() { setenv("HWLOC_SYNTHETIC", "node:1 core:1 pu:1", 1); }
    ~SmallMachine() { unsetenv("HWLOC_SYNTHETIC"); }
    SmallMachine(const SmallMachine &) = delete;
    SmallMachine &operator=(const SmallMachine &) = delete;
};

RankSet only(int rank)
{
    RankSet set;
    set[static_cast<std::size_t>(rank)] = true;
    return set;
}

// ---- calls ----

constexpr int kRanks = 65;
constexpr std::size_t kCount = 2500; // more than the host sums

hetcoll_settings by_ring()
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = "ring";
    settings.chunk_bytes = 4096;
    return settings;
}

// All of one node. Peers take the last one for a process that is gone.
class ManyRanksTest : public ::testing::Test {
protected:
    using Vectors = std::deque<Numbers<int>>;

    ManyRanksTest() { ranks_.find_peers(); }
    static Vectors vectors()
    {
        Vectors vectors;
        for (int rank = 0; rank < kRanks; ++rank) {
            vectors.emplace_back(Where::kDevice, std::vector<int>(kCount));
        }
        return vectors;
    }
    [[nodiscard]] ControlPage::Slot &slot(int rank) { return ranks_.comm(rank).group().own_slot(); }
    void add_up(Vectors &vectors)
    {
        std::vector<int> sum(kCount);
        for (int rank = 0; rank < kRanks; ++rank) {
            std::vector<int> part(kCount);
            for (std::size_t i = 0; i < kCount; ++i) {
                part[i] = (rank + 1) * static_cast<int>(i + 1);
                sum[i] += part[i];
            }
            upload(reinterpret_cast<CUdeviceptr>(vectors[rank].data()), part);
            ranks_.call(rank, vectors[rank], kCount);
        }
        ASSERT_TRUE(ranks_.run());
        for (int rank = 0; rank < kRanks; ++rank) {
            ASSERT_EQ(ranks_.result(rank), HETCOLL_SUCCESS) << "rank " << rank;
            ASSERT_EQ(vectors[rank].read(), sum) << "rank " << rank;
        }
    }

    static constexpr int kLast = kRanks - 1;
    SmallMachine machine_;
    Communicators ranks_{kRanks, by_ring(), [](std::vector<hetcoll_facts> &facts) {
                             ++facts.back().identity.start_time;
                         }};
};

TEST_F(ManyRanksTest, AllGetTheSumWhateverTheyReach)
{
    EXPECT_EQ(slot(0).reach.count(), static_cast<std::size_t>(kLast));
    EXPECT_FALSE(slot(0).reach[kLast]);
    EXPECT_TRUE(slot(kLast).reach[kLast]);
    Vectors first = vectors(), second = vectors();
    add_up(first);
    for (int rank = 0; rank < kRanks; ++rank) {
        const bool reads = rank != 0 && rank != kLast; // the one before it in the ring
        EXPECT_EQ(ranks_.counter(rank, HETCOLL_BYTES_MAPPED) > 0, reads) << rank;
    }

    // As if the trials had gone well.
    for (int rank = 0; rank < kRanks; ++rank) {
        slot(rank).reach.set();
    }
    add_up(second);
    for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(slot(rank).unmapped.inputs,
                  rank == 0 || rank == kLast - 1 ? only(kLast) : RankSet())
            << rank;
    }
    add_up(second);
    for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(slot(rank).input.stands_in, rank == kLast) << rank;
    }
}

// ---- mapping ----

// One rank alone takes the node for another one, and can map no other rank's memory. Nobody prices
// anything then, which takes long.
class OneApart : public RanksOnGpus {
public:
    OneApart(int ranks, int apart)
        : RanksOnGpus(words(ranks, apart), {}, [apart](std::vector<ProcessIdentity> &identities) {
              const ProcessIdentity other = identities[apart == 0 ? 1 : 0];
              std::fill(identities.begin(), identities.end(), other);
          })
    {
        EXPECT_TRUE(find_peers());
    }

private:
    static std::vector<std::string> words(int ranks, int apart)
    {
        std::vector<std::string> words(static_cast<std::size_t>(ranks));
        words[static_cast<std::size_t>(apart)] = "another";
        return words;
    }
};

class ManyMappedTest : public ::testing::TestWithParam<int> {
protected:
    SmallMachine machine_;
    OneApart ranks_{GetParam(), 0};
};
INSTANTIATE_TEST_SUITE_P(Ranks, ManyMappedTest, ::testing::Values(128, kMostNodeRanks));

TEST_P(ManyMappedTest, EachMapsItsNeighboursAndBuffersThatOneCannotMapAreWithdrawn)
{
    const int size = GetParam();
    EXPECT_EQ(ranks_.group(0).own_slot().reach, only(0));
    EXPECT_EQ(ranks_.group(size - 1).own_slot().reach.count(), static_cast<std::size_t>(size));
    std::vector<std::unique_ptr<MappedCall>> calls;
    const auto plan_all = [&] {
        for (int rank = 0; rank < size; ++rank) {
            std::byte *const buffer = ranks_.buffers[rank].data();
            ASSERT_TRUE(calls[rank]
                            ->plan(Algorithm::kRing,
                                   {.send = buffer,
                                    .recv = buffer,
                                    .send_info = ranks_.infos[rank],
                                    .recv_info = ranks_.infos[rank],
                                    .foreign = false,
                                    .bytes = RanksOnGpus::kBytes},
                                   *ranks_.bounces[rank])
                            .ok());
            static_cast<void>(calls[rank]->publish());
        }
    };
    for (int rank = 0; rank < size; ++rank) {
        ranks_.group(rank).own_slot().reach.set();
        calls.push_back(std::make_unique<MappedCall>(*ranks_.processes[rank], ranks_.group(rank),
                                                     *ranks_.peers[rank]));
        ASSERT_TRUE(ranks_.bounces[rank]->enter().ok());
    }
    plan_all();
    for (int rank = 0; rank < size; ++rank) {
        const Schedule ring = build_ring(rank, size);
        const auto mapped = calls[rank]->map(Algorithm::kRing, &ring);
        EXPECT_EQ(mapped.ok(), rank != 0) << rank;
        const int before = (rank + size - 1) % size, behind = (rank + 1) % size;
        const MappedPeers peers = calls[rank]->peers({});
        for (int other = 0; rank != 0 && other < size; ++other) {
            const bool needed = other == before || other == behind;
            EXPECT_EQ(peers.peer[other].input, needed ? ranks_.buffers[other].data() : nullptr);
        }
        calls[rank]->tell_unmapped();
    }
    EXPECT_EQ(ranks_.group(0).own_slot().unmapped.inputs, only(1) | only(size - 1));
    EXPECT_EQ(calls[0]->unmapped().rank, 1);

    for (int rank = 0; rank < size; ++rank) {
        calls[rank]->hear_unmapped();
        calls[rank]->release();
    }
    plan_all();
    for (int rank = 0; rank < size; ++rank) {
        EXPECT_EQ(ranks_.group(rank).own_slot().input.stands_in, rank == 1 || rank == size - 1);
        calls[rank]->release();
    }
    for (int rank = size - 1; rank >= 0; --rank) {
        ranks_.bounces[rank]->leave();
    }
}

TEST(TooManyRanksTest, NobodyMapsAndALineSaysSo)
{
    const SmallMachine machine;
    const OneApart ranks(kMostNodeRanks + 1, kMostNodeRanks);
    for (const auto &peers : ranks.peers) {
        EXPECT_FALSE(peers->found().maps);
    }
    const auto lines = take_log();
    EXPECT_EQ(std::count(lines.begin(), lines.end(),
                         "1 hetcoll: ranks 0 to 255 read no other's GPU memory: a node has more "
                         "than 256 ranks"),
              1);
}

} // namespace
} // namespace hetcoll::test
