// How a call ends where ranks die or a communicator is revoked, in everything that C++ allows:
// nothing touches a rank's memory after its call has returned, and no survivor waits forever.
// hetcoll's are the words of the control page (NodeGroup::may_touch_peers(), touches_no_peers(),
// leave()) and the meetings; in what order a call uses them is written out here, as
// engine/call/operation.cc and allreduce.cc do. A kernel writes to the peers' memory while its rank
// says that it works. A rank learns of deaths late, and to each rank at another time.
#include "ranks.h"

#include <cstdint>

namespace model {
namespace {

using namespace hetcoll;

// Where a rank may stop forever. Its thread does nothing else that others see.
enum class Point : std::uint8_t {
    kBeforeTheCall,
    kBeforeItMarks, // between the agreement and its work
    kMarked,        // before the kernel
    kBeforeTheClose,
    kAfterTheClose, // still marked
    kAfterTheCall,
    kNever,
};

enum class Outcome : std::uint8_t { kSuccess, kError, kDied };

struct Setting {
    int ranks;
    int calls = 1;
    Point dies = Point::kNever; // the last rank, in the first call
    bool revoked = false;       // by a thread that is not a rank, at any time
};

struct Rank {
    alignas(64) std::int64_t vector[kMostRanks]; // peers write a number each
    Meeting meeting;
};

class Calls {
public:
    explicit Calls(const Setting &setting)
        : setting_(setting), job_(std::vector<int>(static_cast<std::size_t>(setting.ranks), 0)),
          ranks_(static_cast<std::size_t>(setting.ranks))
    {
        for (int rank = 0; rank < setting.ranks; ++rank) {
            share(ranks_[rank].vector, sizeof ranks_[rank].vector, "vector" + std::to_string(rank));
        }
    }

    [[nodiscard]] Threads threads()
    {
        Threads all;
        for (int rank = 0; rank < setting_.ranks; ++rank) {
            all.emplace_back([this, rank] { live(rank); });
        }
        if (setting_.revoked) {
            all.emplace_back([this] { deaths_.tell_all(); });
        }
        return all;
    }

private:
    void live(int rank)
    {
        for (int number = 0; number < setting_.calls; ++number) {
            const bool may_die = rank == setting_.ranks - 1 && number == 0;
            const Outcome outcome = call(rank, may_die ? setting_.dies : Point::kNever);
            if (outcome == Outcome::kDied) {
                deaths_.die(rank);
                return;
            }
            use_vector(rank);
            say(outcome == Outcome::kError ? "call has failed:" : "call is over:",
                static_cast<std::uint64_t>(number));
            if (outcome == Outcome::kError) {
                return;
            }
        }
    }

    // The buffers are the application's: a race with whoever touches them still.
    void use_vector(int rank)
    {
        for (std::int64_t &number : ranks_[rank].vector) {
            number = -1;
        }
    }

    // The effect of a kernel that pulls from peers' memory and writes to it.
    void work(int rank)
    {
        for (int peer = 0; peer < setting_.ranks; ++peer) {
            if (peer != rank) {
                ranks_[peer].vector[rank] = rank;
            }
        }
    }

    [[nodiscard]] Outcome call(int rank, Point dies)
    {
        const NodeGroup &group = *job_.group[rank];
        if (dies == Point::kBeforeTheCall) {
            return Outcome::kDied;
        }
        if (!meet(rank)) {
            return leave(rank);
        }
        if (dies == Point::kBeforeItMarks) {
            return Outcome::kDied;
        }
#ifndef HETCOLL_MUTANT_ASKS_NOBODY // a mistake for mutants.sh, as the next one
        while (!group.may_touch_peers()) {
            if (deaths_.are_told_to(rank)) {
                return leave(rank);
            }
            wait();
        }
#endif
        if (dies == Point::kMarked) {
            return Outcome::kDied;
        }
#ifdef HETCOLL_MUTANT_LEAVES_WHILE_IT_WORKS
        if (deaths_.are_told_to(rank)) {
            const Outcome left = leave(rank);
            work(rank);
            return left;
        }
#endif
        work(rank);
        if (dies == Point::kBeforeTheClose) {
            return Outcome::kDied;
        }
        if (!meet(rank)) {
            return leave(rank);
        }
        if (dies == Point::kAfterTheClose) {
            return Outcome::kDied;
        }
        group.touches_no_peers();
        return dies == Point::kAfterTheCall ? Outcome::kDied : Outcome::kSuccess;
    }

    // False: the call is given up.
    [[nodiscard]] bool meet(int rank)
    {
        Meeting &meeting = ranks_[rank].meeting;
        meeting.start(*job_.group[rank], *job_.messages[rank], 1, Flags{1});
        while (meeting.step() == Progress::kPending) {
            if (deaths_.are_told_to(rank)) {
                return false;
            }
            wait();
        }
        return true;
    }

    [[nodiscard]] Outcome leave(int rank)
    {
        while (!job_.group[rank]->leave()) {
            wait();
        }
        return Outcome::kError;
    }

    const Setting setting_;
    Job job_;
    Deaths deaths_{job_};
    std::vector<Rank> ranks_;
};

Report explore_all(const Setting &setting)
{
    auto &calls = *new Calls(setting); // its pages live until the program ends
    return explore(calls.threads(), {.mode = Mode::kStates, .turns = true});
}

class DeathModel : public ::testing::TestWithParam<Point> {};

constexpr Point kPoints[] = {Point::kBeforeTheCall,  Point::kBeforeItMarks, Point::kMarked,
                             Point::kBeforeTheClose, Point::kAfterTheClose, Point::kAfterTheCall};
INSTANTIATE_TEST_SUITE_P(Points, DeathModel, ::testing::ValuesIn(kPoints));

TEST_P(DeathModel, OneOfTwoRanksDies)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 2, .dies = GetParam()})));
}

TEST(DeathOfThreeModel, OneDiesBeforeTheCall)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 3, .dies = Point::kBeforeTheCall})));
}

TEST(RevokeModel, TwoRanksRevoked)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 2, .revoked = true})));
}

TEST(HeavyDeathOfThreeModel, OneDiesBetweenTheAgreementAndItsWork)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 3, .dies = Point::kBeforeItMarks})));
}

} // namespace
} // namespace model
