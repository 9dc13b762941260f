// Whole calls over mapped memory in everything that C++ allows: what ranks announce, the agreement,
// the executor with its counters of progress in the control page, the closing agreement, several
// times. All that is hetcoll's, and so are the schedules. The streams of the GPU are ours: a pull
// runs as soon as it is started, or only when the executor asks for its end.
#include "gpu.h"
#include "ranks.h"

#include "engine/communicator/executor.h"
#include "schedule/algorithms.h"
#include "schedule/match.h"

#include <cstdint>
#include <cstdio>

namespace model {
namespace {

using namespace hetcoll;

constexpr int kCount = 6; // elements

enum class Place : std::uint8_t { kBeside, kInPlace };

struct Setting {
    int ranks;
    int calls;
    Streams streams;
    Place place;
    std::size_t chunk_bytes;
    Schedule (*build)(int rank, int size) = build_ring;
};

std::byte *bytes_of(std::int64_t *numbers) { return reinterpret_cast<std::byte *>(numbers); }

struct Rank {
    alignas(64) std::int64_t input[kCount], output[kCount];
    Schedule schedule;
    std::vector<LocalStep> steps;
    std::vector<MappedPeer> peers;
    Executor executor;
    std::unique_ptr<PullsOnly> streams;
    Meeting meeting;
};

class Calls {
public:
    explicit Calls(const Setting &setting)
        : setting_(setting), job_(std::vector<int>(static_cast<std::size_t>(setting.ranks), 0)),
          ranks_(static_cast<std::size_t>(setting.ranks))
    {
        for (int rank = 0; rank < setting.ranks; ++rank) {
            ranks_[rank].schedule = setting.build(rank, setting.ranks);
        }
        for (int rank = 0; rank < setting.ranks; ++rank) {
            connect(rank);
        }
    }

    [[nodiscard]] Threads threads()
    {
        Threads all;
        for (int rank = 0; rank < setting_.ranks; ++rank) {
            all.emplace_back([this, rank] {
                for (int number = 0; number < setting_.calls; ++number) {
                    run(rank, number);
                }
            });
        }
        return all;
    }

private:
    [[nodiscard]] std::byte *input_of(Rank &rank) const
    {
        return bytes_of(setting_.place == Place::kInPlace ? rank.output : rank.input);
    }
    [[nodiscard]] std::atomic<std::uint64_t> *progress_of(int rank) const
    {
        return job_.group[rank]->own_slot().progress;
    }

    void connect(int rank)
    {
        Rank &self = ranks_[rank];
        std::vector<LocalSchedule> local;
        self.peers.resize(static_cast<std::size_t>(setting_.ranks));
        for (int peer = 0; peer < setting_.ranks; ++peer) {
            if (peer != rank) {
                Rank &other = ranks_[peer];
                local.push_back({peer, &other.schedule});
                self.peers[peer] = {input_of(other), bytes_of(other.output), progress_of(peer)};
            }
        }
        self.steps = match_local_steps(rank, self.schedule, local);
        self.streams = std::make_unique<PullsOnly>(setting_.streams);
        const std::string name = "rank" + std::to_string(rank);
        share(self.input, sizeof self.input, name + ".input");
        share(self.output, sizeof self.output, name + ".output");
        start(rank); // so that its vectors have their memory: threads must not allocate
    }

    void start(int rank)
    {
        Rank &self = ranks_[rank];
        self.executor.start(
            self.schedule, job_.network->rank(rank, setting_.ranks), 1, *self.streams,
            {input_of(self), bytes_of(self.output), kCount, ReduceOp::kSum, ElementKind::kInt64},
            setting_.chunk_bytes, false,
            {self.peers, self.steps, job_.group[rank]->take_progress(word_count(self.steps))});
    }

    void announce(int rank, int call)
    {
        Rank &self = ranks_[rank];
        const auto number = static_cast<std::uint64_t>(call) + 1;
        job_.group[rank]->announce(announced(input_of(self), number),
                                   announced(self.output, number));
    }

    void map_peers(int rank, int call)
    {
        for (int peer = 0; peer < setting_.ranks; ++peer) {
            const MappedPeer mapped =
                map(job_.group[rank]->slot(peer), static_cast<std::uint64_t>(call) + 1);
            if (peer != rank) {
                ranks_[rank].peers[peer] = mapped;
            }
        }
    }

    void agree(int rank)
    {
        Meeting &meeting = ranks_[rank].meeting;
        meeting.start(*job_.group[rank], *job_.messages[rank], 1, Flags{1});
        Job::meet(meeting, true);
    }

    // One MPI_Allreduce of one rank. The macros are mistakes for mutants.sh.
    void run(int rank, int number)
    {
        Rank &self = ranks_[rank];
        auto *const input = reinterpret_cast<std::int64_t *>(input_of(self));
        for (int i = 0; i < kCount; ++i) {
            input[i] = value(number, rank, i);
        }
#ifndef HETCOLL_MUTANT_ANNOUNCES_AFTER_AGREEMENT
        announce(rank, number);
#endif
        agree(rank);
#ifdef HETCOLL_MUTANT_ANNOUNCES_AFTER_AGREEMENT
        announce(rank, number);
#endif
        map_peers(rank, number);
        start(rank);
        while (self.executor.step() == Progress::kPending) {
            wait();
        }
#ifdef HETCOLL_MUTANT_ANNOUNCES_BEFORE_CLOSE
        announce(rank, number);
#endif
#ifndef HETCOLL_MUTANT_NEVER_CLOSES
        agree(rank);
#endif
        for (int i = 0; i < kCount; ++i) {
            require(self.output[i] == sum_of(number, setting_.ranks, i), "the sum");
        }
        say("call is over:", static_cast<std::uint64_t>(number));
    }

    const Setting setting_;
    Job job_;
    std::vector<Rank> ranks_;
};

// In every state.
Report explore_all(const Setting &setting)
{
    auto &calls = *new Calls(setting); // its pages live until the program ends
    return explore(calls.threads(), {.mode = Mode::kStates});
}

TEST(ExecutorModel, TwoRanksOnARing)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 2,
                                    .calls = 1,
                                    .streams = Streams::kEarly,
                                    .place = Place::kBeside,
                                    .chunk_bytes = 64})));
}

TEST(ExecutorModel, TwoRanksOnARingInPlaceWithLateStreams)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 2,
                                    .calls = 1,
                                    .streams = Streams::kLate,
                                    .place = Place::kInPlace,
                                    .chunk_bytes = 64})));
}

TEST(ExecutorModel, TwoRanksByRabenseifner)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 2,
                                    .calls = 1,
                                    .streams = Streams::kLate,
                                    .place = Place::kBeside,
                                    .chunk_bytes = 64,
                                    .build = build_rabenseifner})));
}

// Cases that are too large to explore all of.
class ExecutorAtRandom
    : public ::testing::TestWithParam<std::tuple<Schedule (*)(int, int), Streams, Place>> {
public:
    static Report explore_some(int ranks, std::size_t chunk_bytes, std::uint64_t executions)
    {
        const auto [build, streams, place] = GetParam();
        auto &calls = *new Calls({.ranks = ranks,
                                  .calls = 3,
                                  .streams = streams,
                                  .place = place,
                                  .chunk_bytes = chunk_bytes,
                                  .build = build});
        return explore(calls.threads(), {.mode = Mode::kRandom, .executions = executions});
    }
};

// Two ranks' parts, with half of the vector each way.
Schedule build_two_trees(int rank, int size)
{
    std::vector<int> ranks, up, down;
    for (int i = 0; i < size; ++i) {
        ranks.push_back(i);
        up.push_back(i - 1);
        down.push_back(i + 1 < size ? i + 1 : -1);
    }
    const TreeShape trees[] = {{0, up, 1}, {size - 1, down, 1}};
    return build_trees(rank, ranks, trees);
}

INSTANTIATE_TEST_SUITE_P(Calls, ExecutorAtRandom,
                         ::testing::Combine(::testing::Values(build_ring, build_rabenseifner,
                                                              build_two_trees),
                                            ::testing::Values(Streams::kEarly, Streams::kLate),
                                            ::testing::Values(Place::kBeside, Place::kInPlace)));

TEST_P(ExecutorAtRandom, TwoRanksThreeCallsInChunks)
{
    EXPECT_TRUE(not_refuted(explore_some(2, 16, 150)));
}

TEST_P(ExecutorAtRandom, ThreeRanksThreeCallsInChunks)
{
    EXPECT_TRUE(not_refuted(explore_some(3, 8, 80)));
}

} // namespace
} // namespace model
