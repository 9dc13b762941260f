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
    Status divide(int slots, int lanes) override { return inner_->divide(slots, lanes); }
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
    Status start_pull(int lane, int slot, const Pull &pull) override
    {
        return fails() ? failure() : inner_->start_pull(lane, slot, pull);
    }
    Result<bool> pull_done(int, int) override { return true; }

private:
    bool fails() { return left_ != 0 && --left_ == 0; }
    static Status failure() { return error(Errc::kDriver, "injected"); }

    std::unique_ptr<HostBounce> inner_;
    int left_; // operations until the failing one; 0: none
};

// All ranks of one allreduce of doubles, in turns. Of `node` neighbouring ranks each maps the
// others' vectors; 1: messages only.
struct Job {
    Job(const std::vector<Schedule> &schedules, std::size_t count, bool in_place, bool synchronous,
        int node = 1, int failing = 0)
        : Job(static_cast<int>(schedules.size()), count, synchronous)
    {
        const int size = static_cast<int>(schedules.size());
        schedule = schedules;
        for (int rank = 0; rank < size; ++rank) {
            output[rank] = in_place ? input[rank] : std::vector<double>(count, std::nan(""));
            bounce.push_back(std::make_unique<FailingBounce>(
                std::move(*HostBounce::create(kSlotBytes)), rank == size - 1 ? failing : 0));
        }
        for (int rank = 0; rank < size; ++rank) {
            map_node(rank, node, in_place);
            executor[rank].start(
                schedule[rank], network.rank(rank), 1, *bounce[rank],
                {bytes_of(in_place ? output[rank] : input[rank]), bytes_of(output[rank]), count,
                 ReduceOp::kSum, ElementKind::kFloat64},
                kSlotBytes, false, {mapped[rank], steps[rank], progress[rank].data()});
        }
    }
    static std::vector<Schedule> schedules_of(Algorithm algorithm, int size)
    {
        std::vector<Schedule> all;
        for (int rank = 0; rank < size; ++rank) {
            all.push_back(build_schedule(algorithm, rank, size));
        }
        return all;
    }
    // True if every rank's schedule ends.
    bool run()
    {
        std::vector<Progress> state(executor.size(), Progress::kPending);
        for (int turn = 0; turn < 1000000; ++turn) {
            bool pending = false;
            for (std::size_t rank = 0; rank < executor.size(); ++rank) {
                if (state[rank] == Progress::kPending) {
                    state[rank] = executor[rank].step();
                    pending |= state[rank] == Progress::kPending;
                }
            }
            if (!pending) {
                return std::count(state.begin(), state.end(), Progress::kDone) ==
                       static_cast<long>(state.size());
            }
            network.rank(0).progress(network.rank(0).context);
        }
        return false;
    }

    static std::byte *bytes_of(std::vector<double> &vector)
    {
        return reinterpret_cast<std::byte *>(vector.data());
    }

    MemoryNetwork network;
    std::vector<std::vector<double>> input, output;
    std::vector<Schedule> schedule;
    std::vector<std::unique_ptr<FailingBounce>> bounce;
    std::vector<Executor> executor;
    std::vector<std::vector<MappedPeer>> mapped;
    std::vector<std::vector<LocalStep>> steps;
    std::vector<std::array<std::atomic<std::uint64_t>, 256>> progress;

private:
    Job(int size, std::size_t count, bool synchronous)
        : network(size, synchronous, size * 31 + static_cast<unsigned>(count)), input(size),
          output(size), executor(size), mapped(size), steps(size), progress(size)
    {
        for (int rank = 0; rank < size; ++rank) {
            input[rank].resize(count);
            for (std::size_t i = 0; i < count; ++i) {
                input[rank][i] = (rank + 1) * static_cast<double>(i % 97 + 1);
            }
        }
    }

    void map_node(int rank, int node, bool in_place)
    {
        const int size = static_cast<int>(schedule.size()), first = rank / node * node;
        std::vector<LocalSchedule> local;
        mapped[rank].resize(size);
        for (int peer = first; peer < std::min(first + node, size); ++peer) {
            if (peer != rank) {
                local.push_back({peer, &schedule[peer]});
                mapped[rank][peer] = {bytes_of(in_place ? output[peer] : input[peer]),
                                      bytes_of(output[peer]), progress[peer].data()};
            }
        }
        steps[rank] = match_local_steps(rank, schedule[rank], local);
    }
};

void expect_sums(const Job &job, std::size_t count)
{
    const int size = static_cast<int>(job.output.size());
    for (int rank = 0; rank < size && size > 1; ++rank) {
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(job.output[rank][i], size * (size + 1) / 2 * static_cast<double>(i % 97 + 1))
                << "rank " << rank << " of " << size << ", element " << i;
        }
    }
}

// Recursive doubling exchanges whole vectors: each rank overwrites what the other still reads,
// unless the messages lie beside the vectors.
bool can_be_mapped(Algorithm algorithm) { return algorithm != Algorithm::kRecursiveDoubling; }

class ExecutorTest : public ::testing::TestWithParam<std::tuple<Algorithm, int>> {};

TEST_P(ExecutorTest, EveryRankEndsWithTheSumAndKeepsItsInput)
{
    const auto [algorithm, size] = GetParam();
    for (const std::size_t count : {0, 1, size - 1, size, 33, 1000}) {
        for (const bool in_place : {false, true}) {
            for (const bool synchronous : {false, true}) {
                for (const int node : {1, 3, size}) { // messages, both, mapped memory only
                    if (node > 1 && !can_be_mapped(algorithm)) {
                        continue;
                    }
                    Job job(Job::schedules_of(algorithm, size), count, in_place, synchronous, node);
                    const auto input = job.input;
                    ASSERT_TRUE(job.run()) << size << " ranks, count " << count;
                    expect_sums(job, count);
                    EXPECT_EQ(job.input, input);
                    EXPECT_EQ(job.network.unmatched(), 0);
                    EXPECT_TRUE(node < size || job.network.sends() == 0);
                }
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
        for (const int node : {1, 3, size}) {
            if (node > 1 && !can_be_mapped(algorithm)) {
                continue;
            }
            Job job(Job::schedules_of(algorithm, size), 1000, true, true, node, failing);
            ASSERT_TRUE(job.run()) << size << " ranks, failing operation " << failing;
            EXPECT_FALSE(job.executor[size - 1].take_failure().ok());
            EXPECT_TRUE(job.executor[0].take_failure().ok());
            EXPECT_EQ(job.network.unmatched(), 0);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ExecutorTest,
                         ::testing::Combine(::testing::Values(Algorithm::kRecursiveDoubling,
                                                              Algorithm::kRabenseifner,
                                                              Algorithm::kRing),
                                            ::testing::Values(1, 2, 3, 4, 5, 7, 8, 12)));

} // namespace
} // namespace hetcoll
