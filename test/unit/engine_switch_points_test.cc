// Whatever the chooser takes at a size, and at one element less or more, the sum is right. The
// tests look for all sizes at which it changes its mind, for 2 to 37 ranks.
#include "choice/choose.h"
#include "engine/types/settings.h"
#include "engine_sums.h"
#include "machine/assumed.h"
#include "plan/build_schedule.h"
#include "price/prices.h"
#include "schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <utility>

namespace hetcoll {
namespace {

using test::Job;

constexpr std::size_t kMostCount = 40'000; // elements; larger vectors differ in little but time
const std::size_t kSmallCount = hetcoll_default_settings().small_limit / sizeof(double);

struct Case {
    int ranks;
    int nodes;
};

// As a communicator does it where it knows the ranks' nodes alone.
Query query_of(const Case &job, std::size_t count)
{
    Query query{.bytes = count * sizeof(double),
                .element_bytes = sizeof(double),
                .ranks = job.ranks,
                .nodes = job.nodes};
    if (job.nodes > 1 && job.nodes < job.ranks) {
        query.available |= bit(Algorithm::kHierarchical);
    }
    return query;
}

PriceTable prices_of(const Case &job)
{
    std::vector<int> node_of;
    for (int node = 0; node < job.nodes; ++node) {
        const int first = node * job.ranks / job.nodes, end = (node + 1) * job.ranks / job.nodes;
        node_of.insert(node_of.end(), static_cast<std::size_t>(end - first), node);
    }
    const PricedMachine machine = assumed_machine(node_of);
    Prices prices(machine.cluster, machine.ranks);
    const AlgorithmSet set =
        prices.set() & kUnmappedAlgorithms & static_cast<AlgorithmSet>(~kWhenAskedAlgorithms);
    PriceTable table;
    for (int size = PriceTable::size_below(kSmallCount * sizeof(double));
         size <= PriceTable::size_below(kMostCount * sizeof(double)) + 1; ++size) {
        table.column(size) = prices.of_size(size, set);
    }
    return table;
}

// The facts that decide how a call runs, and the most bytes in a message.
std::pair<Way, std::size_t> decision(const Case &job, std::size_t count)
{
    static std::map<std::pair<int, int>, PriceTable> known;
    const auto [table, fresh] = known.try_emplace({job.ranks, job.nodes});
    if (fresh) {
        table->second = prices_of(job);
    }
    const Query query = query_of(job, count);
    const Choice choice = choose(query, nullptr, &table->second);
    return {resolve_parts(choice, query.bytes, query.links, job.ranks), choice.chunk_bytes};
}

// The first count of every stretch of counts that go alike.
std::vector<std::size_t> switch_points(const Case &job)
{
    std::vector<std::size_t> points;
    std::size_t low = 1;
    while (low < kMostCount) {
        std::size_t high = std::min(low + low / 16 + 1, kMostCount);
        const std::size_t next = high;
        const auto way = [&job](std::size_t count) { return decision(job, count).first; };
        if (way(low) != way(high)) {
            while (low + 1 < high) {
                const std::size_t middle = low + (high - low) / 2;
                (way(middle) == way(low) ? low : high) = middle;
            }
            points.push_back(high);
        }
        low = next;
    }
    return points;
}

// Ranks spread evenly, in order; every second node with a GPU that two ranks share.
Groups groups_of(const Case &job)
{
    Groups groups;
    for (int node = 0; node < job.nodes; ++node) {
        NodeGroups &gpus = groups.nodes.emplace_back();
        const int first = node * job.ranks / job.nodes, end = (node + 1) * job.ranks / job.nodes;
        for (int rank = first; rank < end; ++rank) {
            if (node % 2 == 1 && rank == first + 1) {
                gpus.back().push_back(rank);
            } else {
                gpus.push_back({rank});
            }
        }
    }
    return groups;
}

std::vector<Schedule> schedules_of(const Case &job, std::size_t count)
{
    const Way way = decision(job, count).first;
    const Groups groups = groups_of(job);
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < job.ranks; ++rank) {
        schedules.push_back(build_schedule(way, rank, {.ranks = job.ranks, .groups = &groups}));
    }
    return schedules;
}

void check_sum(const Case &job, std::size_t count)
{
    Job ranks(schedules_of(job, count), count,
              {.in_place = count % 2 == 0,
               .chunk_bytes = decision(job, count).second,
               .slot_bytes = kLargestChunkBytes});
    ASSERT_TRUE(ranks.run()) << job.ranks << " ranks on " << job.nodes << " nodes, count " << count;
    test::expect_sums(ranks, count);
    EXPECT_EQ(ranks.network.unmatched(), 0);
}

class SwitchPointsTest : public ::testing::TestWithParam<int> {}; // the number of ranks

TEST_P(SwitchPointsTest, SumsAreRightAtEachOneElementLessAndOneMore)
{
    for (const int nodes : {1, 2, 3}) {
        const Case job{GetParam(), nodes};
        if (nodes > job.ranks) {
            continue;
        }
        std::set<std::size_t> counts = {kSmallCount + 1}; // where schedules begin
        for (const std::size_t point : switch_points(job)) {
            counts.insert({point - 1, point, point + 1});
        }
        for (const std::size_t count : counts) {
            check_sum(job, count);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SwitchPointsTest, ::testing::Range(2, 38));

// Otherwise the test above tests little.
TEST(SwitchPoints, ThereAreSome)
{
    int points = 0, hierarchical = 0;
    for (int ranks = 2; ranks < 38; ++ranks) {
        points += static_cast<int>(switch_points({ranks, 1}).size());
        hierarchical += static_cast<int>(switch_points({ranks, 2}).size());
    }
    EXPECT_GT(points, 24); // radix k serves from the smallest sizes on for many numbers of ranks
    EXPECT_GT(hierarchical, 0);
}

// Up to the small limit the call is one exchange.
TEST_P(SwitchPointsTest, SmallSumsAreRightUpToTheLimit)
{
    const int size = GetParam();
    for (const std::size_t count : {kSmallCount - 1, kSmallCount}) {
        MemoryNetwork network(size, false, 11);
        std::vector<Exchange> exchange(size);
        std::vector<std::vector<std::int64_t>> mine(size), theirs(size);
        for (int rank = 0; rank < size; ++rank) {
            for (std::size_t i = 0; i < count; ++i) {
                mine[rank].push_back((rank + 1) * static_cast<std::int64_t>(i + 1));
            }
            mine[rank].push_back(0); // the flags
            theirs[rank].resize(count + 1);
            exchange[rank].start(network.rank(rank), 1,
                                 reinterpret_cast<std::byte *>(mine[rank].data()),
                                 reinterpret_cast<std::byte *>(theirs[rank].data()), 8 * count,
                                 count, host_reduce(ReduceOp::kSum, ElementKind::kInt64), Flags{});
        }
        std::vector<Progress> progress(size, Progress::kPending);
        for (int turn = 0; turn < 100000; ++turn) {
            for (int rank = 0; rank < size; ++rank) {
                if (progress[rank] == Progress::kPending) {
                    progress[rank] = exchange[rank].step();
                }
            }
            if (std::count(progress.begin(), progress.end(), Progress::kPending) == 0) {
                break;
            }
            network.rank(0).progress(network.rank(0).context);
        }
        for (int rank = 0; rank < size; ++rank) {
            ASSERT_EQ(progress[rank], Progress::kDone);
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(mine[rank][i], size * (size + 1) / 2 * static_cast<std::int64_t>(i + 1));
            }
        }
    }
}

} // namespace
} // namespace hetcoll
