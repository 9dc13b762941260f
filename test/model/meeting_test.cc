// engine/meeting/meeting.cc and the control page in everything that C++ allows: all ranks learn the
// same flags and sums, without a race, and nobody waits forever.
#include "ranks.h"

#include <cstdint>

namespace model {
namespace {

using namespace hetcoll;

// Sums without a loop that the compiler turns into library calls.
void add(void *dst, const void *a, const void *b, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        static_cast<std::int64_t *>(dst)[i] =
            static_cast<const std::int64_t *>(a)[i] + static_cast<const std::int64_t *>(b)[i];
    }
}

// The flags of a rank in meeting `number`.
Flags flag(int number, int rank)
{
    return static_cast<Flags>((number + rank) % 2 == 0 ? 1 << rank : 0);
}
// The sum of all ranks' values but that of `without`.
Flags all_flags(int number, int size, int without = -1)
{
    Flags flags{};
    for (int rank = 0; rank < size; ++rank) {
        flags |= rank == without ? Flags{} : flag(number, rank);
    }
    return flags;
}

struct Agenda {
    int meetings;
    bool sums;     // two of three meetings sum a number
    int late = -1; // the others look whether all but this rank have come
};

Meeting meetings[kMostRanks];

void start(Job &job, int rank, int number, bool sums)
{
    NodeGroup &group = *job.group[rank];
    Messages &messages = *job.messages[rank];
    if (!sums) {
        meetings[rank].start(group, messages, 1, flag(number, rank));
        return;
    }
    std::byte *const mine = Meeting::payload(group, sizeof(std::int64_t), messages.mine);
    *reinterpret_cast<std::int64_t *>(mine) = value(number, rank);
    meetings[rank].start(group, messages, mine, 1, sizeof(std::int64_t), 1, add,
                         flag(number, rank));
}

void wait_without(Job &job, int rank, int number, int late)
{
    Meeting &meeting = meetings[rank];
    while (meeting.step() == Progress::kPending) {
        if (const std::optional<Flags> flags = meeting.flags_without(late)) {
            require(*flags == all_flags(number, job.size(), late),
                    "flags of all but the late rank");
        }
        wait();
    }
}

void attend(Job &job, int rank, const Agenda &agenda)
{
    const Meeting &meeting = meetings[rank];
    const NodeGroup &group = *job.group[rank];
    const bool stays = group.uses_pages() && group.local_size() > 1;
    const std::int64_t *last = nullptr; // the last meeting's sum
    for (int number = 0; number < agenda.meetings; ++number) {
        const bool sums = agenda.sums && number % 3 != 1;
        start(job, rank, number, sums);
        if (agenda.late < 0 || agenda.late == rank) {
            Job::meet(meetings[rank], true);
        } else {
            wait_without(job, rank, number, agenda.late);
        }
        say("meeting is over:", static_cast<std::uint64_t>(number));
        require(meeting.flags() == all_flags(number, job.size()), "flags of all ranks");
        if (last != nullptr) { // promised until the next but one meeting
            require(*last == sum_of(number - 1, job.size()), "the last sum is still there");
        }
        last = nullptr;
        if (sums) {
            const auto *const sum = reinterpret_cast<const std::int64_t *>(meeting.sum());
            require(*sum == sum_of(number, job.size()), "the sum");
            last = stays ? sum : nullptr;
        }
    }
}

Report explore_meetings(const std::vector<int> &hosts, const Agenda &agenda)
{
    auto &job = *new Job(hosts);
    Threads threads;
    for (int rank = 0; rank < job.size(); ++rank) {
        threads.push_back([&job, rank, agenda] { attend(job, rank, agenda); });
    }
    return explore(threads);
}

TEST(MeetingModel, TwoRanksMeetFourTimes)
{
    EXPECT_TRUE(proved(explore_meetings({0, 0}, {.meetings = 4, .sums = true})));
}

TEST(MeetingModel, ThreeRanksMeetThreeTimes)
{
    EXPECT_TRUE(proved(explore_meetings({0, 0, 0}, {.meetings = 3, .sums = true})));
}

TEST(MeetingModel, TwoNodesMeetThreeTimes)
{
    EXPECT_TRUE(proved(explore_meetings({0, 0, 1}, {.meetings = 3, .sums = true})));
}

TEST(MeetingModel, OneOfTwoRanksMayComeLate)
{
    EXPECT_TRUE(proved(explore_meetings({0, 0}, {.meetings = 3, .sums = false, .late = 1})));
}

TEST(MeetingModel, OneOfThreeRanksMayComeLate)
{
    EXPECT_TRUE(proved(explore_meetings({0, 0, 0}, {.meetings = 1, .sums = false, .late = 2})));
}

} // namespace
} // namespace model
