// A rank has ended a call by itself, before it met the others, and comes to them in its next call:
// both calls fail on all ranks, and then all are in the same call again. Or it has told them that
// it cannot begin the call, which then fails on all.
#include "test/unit/engine_communicators.h"

namespace hetcoll::test {
namespace {

struct Case {
    std::vector<int> node_of;
    Where where;
    std::size_t count;
    unsigned first; // number
    int check = HETCOLL_CHECK_ON;
};

hetcoll_settings settings_of(const Case &of)
{
    hetcoll_settings settings = default_settings();
    settings.check = of.check;
    return settings;
}

class CallNumberTest : public ::testing::TestWithParam<Case> {
protected:
    void SetUp() override { ranks_.network().allow_shorter(); } // of ranks in different calls

    void begin(int rank, int number)
    {
        const Case &of = GetParam();
        Numbers<int> &vector =
            vectors_.emplace_back(of.where, std::vector<int>(of.count, rank + 1));
        last_[static_cast<std::size_t>(rank)] = &vector;
        ranks_.call(rank, vector, of.count);
        ranks_.made(rank).number = of.first + static_cast<unsigned>(number);
        ranks_.previous(rank).output = std::vector<int>(of.count, 6);
    }
    // Each of these ranks in the call with that number: their result, which is the same. One of
    // them refuses it.
    int run(const std::vector<int> &ranks, const std::vector<int> &numbers, int refuses = -1)
    {
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            if (ranks[i] == refuses) {
                ranks_.refuse(ranks[i], GetParam().first + static_cast<unsigned>(numbers[i]), why_);
            } else {
                begin(ranks[i], numbers[i]);
            }
        }
        EXPECT_TRUE(ranks_.step_until(ranks, [&] {
            return std::all_of(ranks.begin(), ranks.end(),
                               [this](int rank) { return ranks_.is_over(rank); });
        }));
        const int result = ranks_.result(ranks[0] == refuses ? ranks[1] : ranks[0]);
        for (const int rank : ranks) {
            EXPECT_TRUE(rank == refuses || ranks_.result(rank) == result) << "rank " << rank;
        }
        return result;
    }
    void expect_sums()
    {
        for (const Numbers<int> *vector : last_) {
            EXPECT_EQ(vector->read(), std::vector<int>(GetParam().count, 6));
        }
    }

    static long count(const std::vector<std::string> &lines, const char *words)
    {
        return std::count_if(lines.begin(), lines.end(), [words](const std::string &line) {
            return line.find(words) != std::string::npos;
        });
    }

    Communicators ranks_{3, settings_of(GetParam()), [](std::vector<hetcoll_facts> &facts) {
                             for (std::size_t rank = 0; rank < facts.size(); ++rank) {
                                 facts[rank].identity.host +=
                                     static_cast<std::uint64_t>(GetParam().node_of[rank]);
                             }
                         }};
    std::deque<Numbers<int>> vectors_;
    std::array<const Numbers<int> *, 3> last_{};
    hetcoll_why_refused why_ = HETCOLL_HAS_NO_MEMORY;
};

TEST_P(CallNumberTest, BothCallsFailOnAllRanksAndTheNextOneIsRight)
{
    for (const int odd : {0, 1, 2}) {
        SCOPED_TRACE("rank " + std::to_string(odd) + " is ahead");
        const int number = 5 * odd;
        std::vector<int> others;
        for (int rank = 0; rank < 3; ++rank) {
            if (rank != odd) {
                others.push_back(rank);
            }
        }
        ASSERT_EQ(run({0, 1, 2}, {number + 1, number + 1, number + 1}), HETCOLL_SUCCESS);
        expect_sums();
        take_log();
        ASSERT_EQ(run({odd, others[0], others[1]}, {number + 4, number + 2, number + 2}),
                  HETCOLL_ERROR_COLLECTIVE);
        EXPECT_EQ(count(take_log(), "are not in the same call"), 1);
        for (const int missed : {3, 4}) { // alone: nobody else is in these calls
            ASSERT_EQ(run(others, {number + missed, number + missed}), HETCOLL_ERROR_COLLECTIVE);
        }
        ASSERT_EQ(run({0, 1, 2}, {number + 5, number + 5, number + 5}), HETCOLL_SUCCESS);
        expect_sums();
    }
}

TEST_P(CallNumberTest, ACallThatARankRefusesFailsOnAllAndTheNextOneIsRight)
{
    ASSERT_EQ(run({0, 1, 2}, {1, 1, 1}), HETCOLL_SUCCESS);
    for (const int odd : {0, 1, 2}) {
        SCOPED_TRACE("rank " + std::to_string(odd) + " refuses");
        const int number = 3 * odd + 2;
        for (const int refused : {number, number + 1}) {
            take_log();
            ASSERT_EQ(run({0, 1, 2}, {refused, refused, refused}, odd), HETCOLL_ERROR_NO_MEMORY);
            EXPECT_EQ(count(take_log(), "has no host memory to begin it"), 1);
        }
        ASSERT_EQ(run({0, 1, 2}, {number + 2, number + 2, number + 2}), HETCOLL_SUCCESS);
        expect_sums();
    }
}

TEST_P(CallNumberTest, ACallOnACapturedStreamFailsOnAllAndTheNextOneIsRight)
{
    why_ = HETCOLL_CAPTURES;
    ASSERT_EQ(run({0, 1, 2}, {1, 1, 1}), HETCOLL_SUCCESS);
    take_log();
    ASSERT_EQ(run({0, 1, 2}, {2, 2, 2}, 1), HETCOLL_ERROR_COLLECTIVE);
    const std::string said = "call " + std::to_string(GetParam().first + 2) +
                             ", fails on all ranks with MPI_ERR_OTHER: rank 1 captures a graph";
    EXPECT_EQ(count(take_log(), said.c_str()), 1);
    ASSERT_EQ(run({0, 1, 2}, {3, 3, 3}), HETCOLL_SUCCESS);
    expect_sums();
}

TEST_P(CallNumberTest, TheFirstCallThatARankRefusesFailsOnAllAndTheNextOneIsRight)
{
    ASSERT_EQ(run({0, 1, 2}, {1, 1, 1}, 1), HETCOLL_ERROR_NO_MEMORY);
    ASSERT_EQ(run({0, 1, 2}, {2, 2, 2}), HETCOLL_SUCCESS);
    expect_sums();
}

INSTANTIATE_TEST_SUITE_P(Calls, CallNumberTest,
                         ::testing::Values(Case{{0, 0, 0}, Where::kHost, 4, 0},
                                           Case{{0, 0, 0}, Where::kDevice, 4, 0xfffffff5},
                                           Case{{0, 0, 1}, Where::kDevice, 10000, 0},
                                           Case{{0, 0, 1}, Where::kHost, 4, 0xfffffffa},
                                           Case{{0, 1, 2}, Where::kDevice, 4, 0},
                                           Case{{0, 1, 2}, Where::kHost, 10000, 0}));
INSTANTIATE_TEST_SUITE_P(
    UncheckedCalls, CallNumberTest,
    ::testing::Values(Case{{0, 0, 0}, Where::kHost, 4, 0, HETCOLL_CHECK_OFF},
                      Case{{0, 0, 0}, Where::kDevice, 10000, 0, HETCOLL_CHECK_OFF}));

// Where messages have no place for it.
TEST(RefusalTest, OfUncheckedCallsBetweenNodesEndsTheJob)
{
    Communicators ranks{2, settings_of({{}, Where::kHost, 4, 0, HETCOLL_CHECK_OFF}),
                        [](std::vector<hetcoll_facts> &facts) { ++facts[1].identity.host; }};
    Numbers<int> vector(Where::kHost, {1, 2});
    ranks.call(0, vector, 2);
    ranks.refuse(1, 1, HETCOLL_HAS_NO_MEMORY);
    EXPECT_TRUE(ranks.step_until({0, 1}, [&] { return ranks.is_over(1); }));
    EXPECT_EQ(ranks.network().ended_job(1), HETCOLL_ERROR_NO_MEMORY);
    EXPECT_EQ(ranks.network().ended_job(0), 0);
}

} // namespace
} // namespace hetcoll::test
