// A simulated rank, whose time is the price of a schedule, moves the same bytes as the executor
// that runs it: chunk by chunk, from rank to rank, in messages and by pulls.
#include "engine_job.h"
#include "price/rank.h"
#include "test/unit/hierarchy.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <tuple>

namespace hetcoll {
namespace {

using test::build_hierarchical;
using test::Job;
using test::neighbours;

// The bytes of each transfer from a rank to another one in a channel, in their order.
struct Connection {
    int from, to, channel;
    auto operator<=>(const Connection &) const = default;
};
using Transferred = std::map<Connection, std::vector<std::size_t>>;

constexpr int kTag = 1000; // of channel 0

// A rank's table that notes what it sends.
class Watched {
public:
    Watched(const hetcoll_p2p &table, Transferred &seen) : to_(table), table_(table), seen_(seen)
    {
        table_.context = this;
        table_.isend = [](void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                          void **request) {
            const Watched &self = *static_cast<Watched *>(context);
            self.seen_[{self.to_.rank, peer, kTag - tag}].push_back(bytes);
            return self.to_.isend(self.to_.context, buffer, bytes, peer, tag, request);
        };
        table_.irecv = [](void *context, void *buffer, std::size_t bytes, int peer, int tag,
                          void **request) {
            const hetcoll_p2p &to = static_cast<Watched *>(context)->to_;
            return to.irecv(to.context, buffer, bytes, peer, tag, request);
        };
        table_.test = [](void *context, void **request) {
            const hetcoll_p2p &to = static_cast<Watched *>(context)->to_;
            return to.test(to.context, request);
        };
    }
    [[nodiscard]] const hetcoll_p2p &table() const { return table_; }

private:
    hetcoll_p2p to_, table_;
    Transferred &seen_;
};

// A rank's bounce that notes what it pulls. It has the slots of a job, and moves nothing.
class WatchedPulls final : public Bounce {
public:
    WatchedPulls(int rank, const Schedule &schedule, Transferred &seen)
        : rank_(rank), schedule_(schedule), seen_(seen)
    {
    }
    Status divide(int slots, int) override
    {
        slot_bytes_ = slot_bytes_of(kBounceSlots * kLargestChunkBytes, slots);
        return {};
    }
    [[nodiscard]] std::size_t slot_bytes() const noexcept override { return slot_bytes_; }
    Status start_read(int, const void *, std::size_t) override { return {}; }
    [[nodiscard]] Result<bool> read_done(int) override { return true; }
    [[nodiscard]] const void *message(int) const noexcept override { return memory().data(); }
    [[nodiscard]] bool reads_out() const noexcept override { return true; }
    [[nodiscard]] void *landing(int) noexcept override { return memory().data(); }
    Status start_apply(int, const Apply &) override { return {}; }
    Status start_fold(int, const Pull &) override { return {}; }
    [[nodiscard]] Result<bool> apply_done(int) override { return true; }
    Status start_pull(int channel, int, const Pull &pull) override
    {
        const auto first = static_cast<std::size_t>(pull.step);
        const bool reduces = schedule_.steps[first].kind == StepKind::kRecvReduce;
        const std::size_t peers = static_cast<std::size_t>(pull.inputs.count) - (reduces ? 1 : 0);
        for (std::size_t step = first; step < first + peers; ++step) {
            seen_[{schedule_.steps[step].peer, rank_, channel}].push_back(pull.count *
                                                                          element_bytes(pull.kind));
        }
        return {};
    }
    [[nodiscard]] Result<bool> pull_done(int, int) override { return true; }

private:
    // All slots of all ranks share it: nobody looks at what arrives.
    static std::vector<std::byte> &memory()
    {
        static std::vector<std::byte> bytes(kLargestChunkBytes);
        return bytes;
    }

    int rank_;
    const Schedule &schedule_;
    Transferred &seen_;
    std::size_t slot_bytes_ = 0;
};

struct Case {
    std::string name;
    std::vector<Schedule> schedules; // by rank
    std::vector<int> node_of;        // whose ranks map each other
    std::size_t count, chunk_bytes;  // count: of doubles

    [[nodiscard]] int size() const { return static_cast<int>(schedules.size()); }
};

Transferred by_executors(const Case &one)
{
    Transferred seen;
    std::deque<Watched> tables, adapters;
    std::deque<WatchedPulls> bounces;
    std::deque<Carrier> carriers;
    Job job(one.schedules, one.count, {.node_of = one.node_of});
    for (int rank = 0; rank < one.size(); ++rank) {
        tables.emplace_back(job.network.rank(rank), seen);
        adapters.emplace_back(job.adapters.rank(rank), seen);
        bounces.emplace_back(rank, one.schedules[rank], seen);
        Bounce &by_adapter = bounces.emplace_back(rank, one.schedules[rank], seen);
        job.executor[rank].start(
            one.schedules[rank], tables.back().table(), kTag, *(bounces.end() - 2),
            {Job::bytes_of(job.input[rank]), Job::bytes_of(job.output[rank]), one.count,
             ReduceOp::kSum, ElementKind::kFloat64},
            one.chunk_bytes, false, {job.mapped[rank], job.steps[rank], job.progress[rank].data()},
            &carriers.emplace_back(adapters.back().table(), by_adapter));
    }
    EXPECT_TRUE(job.run()) << one.name;
    return seen;
}

// Ranks whose transfers end in the order in which both sides have begun them.
class SimulatedRanks {
public:
    explicit SimulatedRanks(const Case &one)
    {
        for (int rank = 0; rank < one.size(); ++rank) {
            SimRankPlan plan;
            plan.feed = feed_schedule(one.schedules[rank]);
            plan.count = one.count;
            plan.element_bytes = sizeof(double);
            plan.chunk_bytes = one.chunk_bytes;
            plan.last_channel = plan.feed->channel_count();
            plan.is_mapped = [&one, rank](int peer) {
                return one.node_of[peer] == one.node_of[rank];
            };
            plan.actor_of = [](int peer) { return peer; };
            ranks_.emplace_back(std::move(plan));
            transfers_.emplace_back(*this, rank);
        }
    }
    // Returns their transfers, if all of them come to their ends.
    [[nodiscard]] Transferred run()
    {
        std::vector<bool> waits;
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            waits.push_back(ranks_[rank].begin(transfers_[rank]));
        }
        for (; !ended_.empty(); ended_.pop_front()) {
            const Token token = ended_.front();
            waits[token.rank] = ranks_[token.rank].end(token.token);
        }
        EXPECT_EQ(std::count(waits.begin(), waits.end(), true), 0);
        return seen_;
    }

private:
    struct Token {
        int rank, token;
    };
    struct Waiting {
        std::deque<Token> sends, receives;
    };
    class OfRank final : public Transfers {
    public:
        OfRank(SimulatedRanks &all, int rank) : all_(all), rank_(rank) {}
        void send(int peer, int channel, double bytes, int token) override
        {
            const Connection connection{rank_, peer, channel};
            all_.seen_[connection].push_back(static_cast<std::size_t>(bytes));
            all_.waiting_[connection].sends.push_back({rank_, token});
            all_.match(all_.waiting_[connection]);
        }
        void receive(int peer, int channel, int token) override
        {
            Waiting &waiting = all_.waiting_[{peer, rank_, channel}];
            waiting.receives.push_back({rank_, token});
            all_.match(waiting);
        }
        void work(double, int token) override { all_.ended_.push_back({rank_, token}); }

    private:
        SimulatedRanks &all_;
        int rank_;
    };
    void match(Waiting &waiting)
    {
        if (!waiting.sends.empty() && !waiting.receives.empty()) {
            for (std::deque<Token> *side : {&waiting.sends, &waiting.receives}) {
                ended_.push_back(side->front());
                side->pop_front();
            }
        }
    }

    std::deque<SimRank> ranks_;
    std::deque<OfRank> transfers_;
    std::map<Connection, Waiting> waiting_;
    std::deque<Token> ended_;
    Transferred seen_;
};

std::string print(const std::vector<std::size_t> &transfers)
{
    std::string text = std::to_string(transfers.size()) + " transfers";
    for (std::size_t i = 0; i < std::min<std::size_t>(transfers.size(), 8); ++i) {
        text += (i == 0 ? ", of " : " ") + std::to_string(transfers[i]);
    }
    return text + (transfers.size() > 8 ? " .. bytes" : " bytes");
}

void expect_the_same(const Case &one)
{
    Transferred real = by_executors(one), simulated = SimulatedRanks(one).run();
    for (const Transferred *ranks : {&real, &simulated}) {
        for (const auto &[connection, transfers] : *ranks) {
            ASSERT_EQ(print(simulated[connection]), print(real[connection]))
                << one.name << ", " << one.size() << " ranks, " << one.count
                << " doubles in chunks of " << one.chunk_bytes << " bytes: rank " << connection.from
                << " to rank " << connection.to << ", channel " << connection.channel;
        }
    }
    ASSERT_EQ(simulated, real) << one.name;
}

// Less than an element a rank, less than a chunk, many chunks that are whole elements or not.
void expect_the_same(const std::string &name, const std::vector<Schedule> &schedules,
                     const std::vector<int> &node_of)
{
    for (const auto &[count, chunk_bytes] : {std::pair<std::size_t, std::size_t>{1, 4096},
                                             {13, 4096},
                                             {1000, 4096},
                                             {1000, 10'000},
                                             {20'011, 4096},
                                             {20'011, 10'004},
                                             {20'011, 65'536},
                                             {150'001, kLargestChunkBytes}}) {
        expect_the_same({name, schedules, node_of, count, chunk_bytes});
        if (::testing::Test::HasFatalFailure()) {
            return; // the others would say the same
        }
    }
}

class SimulatedExecutorTest : public ::testing::TestWithParam<std::tuple<Algorithm, int>> {
}; // and ranks

TEST_P(SimulatedExecutorTest, EveryRankMovesTheSameBytes)
{
    const auto [algorithm, size] = GetParam();
    const bool can_be_mapped = !row_of(algorithm).has(Trait::kWholeVectors);
    for (const int node : {1, 3, size}) { // messages, both, mapped memory only
        if (node == 1 || can_be_mapped) {
            expect_the_same(algorithm_name(algorithm), Job::schedules_of(algorithm, size),
                            neighbours(size, node));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, SimulatedExecutorTest,
    ::testing::Combine(::testing::Values(Algorithm::kRecursiveDoubling, Algorithm::kRabenseifner,
                                         Algorithm::kRing, Algorithm::kOrdered, Algorithm::kRadix3,
                                         Algorithm::kRadix4, Algorithm::kRadix8,
                                         Algorithm::kRecursiveMultiplying),
                       ::testing::Values(2, 3, 4, 5, 7, 8, 12)));

// Three nodes of three to five GPUs, two of whose ranks share a GPU.
class SimulatedHierarchyTest
    : public ::testing::TestWithParam<std::tuple<int, int, bool>> { // segments, lanes, over trees
protected:
    SimulatedHierarchyTest()
    {
        groups_.nodes = {{{0}, {1}, {2}}, {{3}, {4}, {5}, {6}, {7}}, {{8}, {9}, {10, 11}}};
        groups_.trees = {{{0, {-1, 0, 1}, 2}}, {}, {{1, {1, -1, 1}, 1}, {0, {-1, 0, 1}, 1}}};
    }

    Groups groups_;
    const std::vector<int> nodes_{0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2};
    const std::vector<int> apart_ = neighbours(12, 1);
};

TEST_P(SimulatedHierarchyTest, EveryRankMovesTheSameBytes)
{
    const auto [segments, lanes, over_trees] = GetParam();
    for (const Algorithm between : {Algorithm::kRing, Algorithm::kRadix4}) {
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < 12; ++rank) {
            schedules.push_back(build_hierarchical(rank, groups_,
                                                   {.between_nodes = between,
                                                    .over_trees = over_trees,
                                                    .segments = segments,
                                                    .lanes = lanes}));
        }
        expect_the_same("hierarchy, messages only", schedules, apart_);
        expect_the_same("hierarchy", schedules, nodes_);
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SimulatedHierarchyTest,
                         ::testing::Combine(::testing::Values(1, 2, 5, 16), ::testing::Values(1, 2),
                                            ::testing::Bool()));

// Parts of a vector go through host memory and through adapters in any case.
TEST(SimulatedTreesTest, EveryRankMovesTheSameBytes)
{
    const std::vector<TreeShape> trees = {{.root = 0, .parent = {-1, 0, 0, 1, 1}, .weight = 2},
                                          {.root = 4, .parent = {1, 2, 3, 4, -1}, .weight = 3}};
    const std::vector<int> ranks = {3, 0, 4, 1, 2}; // of the vertices
    for (const SideShares sides : {SideShares{}, SideShares{.host = 3, .adapter = 7}}) {
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < 5; ++rank) {
            schedules.push_back(build_trees(rank, ranks, trees, sides));
        }
        for (const int node : {1, 2, 5}) {
            expect_the_same("trees, nodes of " + std::to_string(node), schedules,
                            neighbours(5, node));
        }
    }
}

} // namespace
} // namespace hetcoll
