#include "choice/arrivals.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hetcoll {
namespace {

// All ranks of a communicator, which tell each other their waits when the time has come.
class Job {
public:
    explicit Job(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

    // One call, to which rank r comes at arrival_us[r]. True if an exchange was due.
    bool call(const std::vector<std::uint64_t> &arrival_us)
    {
        std::uint64_t last = 0;
        for (const std::uint64_t time : arrival_us) {
            last = std::max(last, time);
        }
        std::size_t due = 0;
        std::vector<std::uint64_t> all(Arrivals::kNumbersOfARank * ranks_.size());
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            ranks_[rank].note_wait((last - arrival_us[rank]) * 1000);
            due += ranks_[rank].is_due();
            ranks_[rank].fill(std::span(all).subspan(Arrivals::kNumbersOfARank * rank,
                                                     Arrivals::kNumbersOfARank));
        }
        EXPECT_TRUE(due == 0 || due == ranks_.size()) << "at the same call on every rank";
        for (Arrivals &rank : ranks_) {
            static_cast<void>(due != 0 && rank.take(all));
        }
        for (const Arrivals &rank : ranks_) {
            EXPECT_EQ(rank.late(), ranks_[0].late());
            EXPECT_EQ(rank.late_us(), ranks_[0].late_us());
        }
        return due != 0;
    }
    [[nodiscard]] const Arrivals &operator[](std::size_t rank) const { return ranks_[rank]; }

private:
    std::vector<Arrivals> ranks_;
};

TEST(ArrivalsTest, FindARankThatIsAlwaysLateAtTheFirstExchange)
{
    Job job(4);
    int calls = 1;
    while (!job.call({100, 140, 5000, 0})) {
        EXPECT_EQ(job[0].late(), -1);
        ++calls;
    }
    EXPECT_EQ(calls, Arrivals::kPeriod);
    EXPECT_EQ(job[0].late(), 2);
    EXPECT_GT(job[0].late_us(), 4000);
    EXPECT_LE(job[0].late_us(), 4860) << "what it keeps the next one waiting, at the most";
    EXPECT_EQ(job[2].average_wait_ns(), 0u);
}

TEST(ArrivalsTest, FindNobodyWhereLatenessIsRandom)
{
    std::mt19937 random(1);
    Job job(8);
    int late = 0;
    for (int call = 0; call < 2000; ++call) {
        std::vector<std::uint64_t> arrival(8);
        for (std::uint64_t &time : arrival) {
            time = random() % 10000;
        }
        late += job.call(arrival) && job[0].late() >= 0 ? 1 : 0;
    }
    EXPECT_EQ(late, 0);
}

TEST(ArrivalsTest, FindARankBehindTheNoiseOfTheOthers)
{
    std::mt19937 random(1);
    Job job(8);
    for (int call = 0; call < 100; ++call) {
        std::vector<std::uint64_t> arrival(8);
        for (std::uint64_t &time : arrival) {
            time = random() % 2000;
        }
        arrival[5] += 20000;
        job.call(arrival);
    }
    EXPECT_EQ(job[0].late(), 5);
}

TEST(ArrivalsTest, ForgetARankThatIsLateNoMore)
{
    Job job(3);
    for (int call = 0; call < 2 * Arrivals::kPeriod; ++call) {
        job.call({0, 9000, 0});
    }
    EXPECT_EQ(job[0].late(), 1);
    for (int call = 0; call < 4 * Arrivals::kPeriod; ++call) {
        job.call({0, 0, 0});
    }
    EXPECT_EQ(job[0].late(), -1);
}

TEST(ArrivalsTest, TellWhenTheDecisionChanges)
{
    Arrivals arrivals;
    const std::vector<std::uint64_t> late{5000, 6000, 0, 100}, equal{5000, 6000, 5000, 6000};
    EXPECT_TRUE(arrivals.take(late));
    EXPECT_EQ(arrivals.late(), 1);
    EXPECT_FALSE(arrivals.take(late));
    EXPECT_TRUE(arrivals.take(equal));
    EXPECT_EQ(arrivals.late(), -1);
}

} // namespace
} // namespace hetcoll
