#include "engine/executor.h"

#include "memory_network.h"
#include "transport/host_bounce.h"
#include "tuning/build_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

namespace hetcoll {
namespace {

constexpr std::size_t kSlotBytes = 256; // small, so that steps take many chunks

// A host bounce whose n-th operation fails, as a driver's would.
class FailingBounce final : public Bounce {
public:
    FailingBounce(std::unique_ptr<HostBounce> inner, int failing)
        : inner_(std::move(inner)), left_(failing)
    {
    }
    std::size_t slot_bytes() const noexcept override { return inner_->slot_bytes(); }
    Status start_read(int slot, const void *from, std::size_t bytes) override
    {
        return fails() ? failure() : inner_->start_read(slot, from, bytes);
    }
    Result<bool> read_done(int) override { return true; }
    const void *message(int slot) const noexcept override { return inner_->message(slot); }
    bool reads_out() const noexcept override { return false; }
    void *landing(int slot) noexcept override { return inner_->landing(slot); }
    Status start_apply(int slot, const Apply &apply) override
    {
        return fails() ? failure() : inner_->start_apply(slot, apply);
    }
    Result<bool> apply_done(int) override { return true; }

private:
    bool fails() { return left_ != 0 && --left_ == 0; }
    static Status failure() { return error(Errc::kDriver, "injected"); }

    std::unique_ptr<HostBounce> inner_;
    int left_; // operations until the failing one; 0: none
};

// All ranks of one allreduce of doubles, in turns.
struct Job {
    Job(Algorithm algorithm, int size, std::size_t count, bool in_place, bool synchronous,
        int failing = 0)
        : network(size, synchronous, size * 31 + static_cast<unsigned>(count)), input(size),
          output(size), schedule(size), executor(size)
    {
        for (int rank = 0; rank < size; ++rank) {
            input[rank].resize(count);
            for (std::size_t i = 0; i < count; ++i) {
                input[rank][i] = (rank + 1) * static_cast<double>(i % 97 + 1);
            }
            output[rank] = in_place ? input[rank] : std::vector<double>(count, std::nan(""));
            schedule[rank] = build_schedule(algorithm, rank, size);
            bounce.push_back(std::make_unique<FailingBounce>(
                std::move(*HostBounce::create(kSlotBytes)), rank == size - 1 ? failing : 0));
            const auto *send =
                reinterpret_cast<const std::byte *>((in_place ? output : input)[rank].data());
            executor[rank].start(schedule[rank], network.rank(rank), 1, *bounce[rank],
                                 {send, reinterpret_cast<std::byte *>(output[rank].data()), count,
                                  ReduceOp::kSum, ElementKind::kFloat64},
                                 kSlotBytes, false);
        }
    }

    // True if every rank's schedule ends.
    bool run()
    {
        std::vector<Progress> progress(executor.size(), Progress::kPending);
        for (int turn = 0; turn < 1000000; ++turn) {
            bool pending = false;
            for (std::size_t rank = 0; rank < executor.size(); ++rank) {
                if (progress[rank] == Progress::kPending) {
                    progress[rank] = executor[rank].step();
                    pending |= progress[rank] == Progress::kPending;
                }
            }
            if (!pending) {
                return std::count(progress.begin(), progress.end(), Progress::kDone) ==
                       static_cast<long>(progress.size());
            }
            network.rank(0).progress(network.rank(0).context);
        }
        return false;
    }

    MemoryNetwork network;
    std::vector<std::vector<double>> input, output;
    std::vector<Schedule> schedule;
    std::vector<std::unique_ptr<FailingBounce>> bounce;
    std::vector<Executor> executor;
};

class ExecutorTest : public ::testing::TestWithParam<std::tuple<Algorithm, int>> {};

TEST_P(ExecutorTest, EveryRankEndsWithTheSumAndKeepsItsInput)
{
    const auto [algorithm, size] = GetParam();
    for (const std::size_t count : {0, 1, size - 1, size, 33, 1000}) {
        for (const bool in_place : {false, true}) {
            for (const bool synchronous : {false, true}) {
                Job job(algorithm, size, count, in_place, synchronous);
                const auto input = job.input;
                ASSERT_TRUE(job.run()) << size << " ranks, count " << count;
                for (int rank = 0; rank < size && size > 1; ++rank) {
                    for (std::size_t i = 0; i < count; ++i) {
                        ASSERT_EQ(job.output[rank][i],
                                  size * (size + 1) / 2 * static_cast<double>(i % 97 + 1))
                            << "rank " << rank << " of " << size << ", element " << i;
                    }
                }
                EXPECT_EQ(job.input, input);
                EXPECT_EQ(job.network.unmatched(), 0);
            }
        }
    }
}

// A rank whose driver fails goes on with its messages: nobody hangs, and it knows.
TEST_P(ExecutorTest, AFailedRankServesItsPeers)
{
    const auto [algorithm, size] = GetParam();
    if (size == 1) {
        GTEST_SKIP() << "one rank runs nothing";
    }
    for (const int failing : {1, 2, 5}) {
        Job job(algorithm, size, 1000, true, true, failing);
        ASSERT_TRUE(job.run()) << size << " ranks, failing operation " << failing;
        EXPECT_FALSE(job.executor[size - 1].take_failure().ok());
        EXPECT_TRUE(job.executor[0].take_failure().ok());
        EXPECT_EQ(job.network.unmatched(), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ExecutorTest,
                         ::testing::Combine(::testing::Values(Algorithm::kRecursiveDoubling,
                                                              Algorithm::kRabenseifner,
                                                              Algorithm::kRing),
                                            ::testing::Values(1, 2, 3, 4, 5, 7, 8, 12)));

} // namespace
} // namespace hetcoll
