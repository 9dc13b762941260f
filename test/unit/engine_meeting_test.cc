#include "engine/meeting/meeting.h"

#include "engine/meeting/flags.h"
#include "engine_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

namespace hetcoll {
namespace {

using test::Nodes;
using Ranks = std::vector<int>;

constexpr int kMeetings = 300;
constexpr std::size_t kMostCount = ControlPage::kPayloadBytes / sizeof(std::int64_t);

// What is brought to meeting `number`: the same numbers on every rank.
struct Agenda {
    explicit Agenda(int number)
        : count(number % 3 == 0   ? 0
                : number % 7 == 1 ? kMostCount
                                  : static_cast<std::size_t>(number % 40 + 1))
    {
    }
    static Flags flags(int number, int rank)
    {
        return static_cast<Flags>((number + rank) % 5 == 0 ? 1 << (number + rank) % 16 : 0);
    }
    static std::int64_t part(int number, int rank, std::size_t i)
    {
        return (rank + 1) * (number + static_cast<std::int64_t>(i));
    }
    std::size_t count; // 0: flags only
};

// One rank's way through all meetings, with random pauses. Reads the last sum once more after the
// next meeting, up to when it is promised to stay.
void attend(Nodes &nodes, int rank, unsigned seed)
{
    const int size = nodes.size();
    std::mt19937 random(seed + static_cast<unsigned>(rank));
    const auto messages = std::make_unique<Messages>();
    NodeGroup &group = *nodes.group[rank];
    const bool sums_stay = group.uses_pages() && group.local_size() > 1;
    const HostReduce add = host_reduce(ReduceOp::kSum, ElementKind::kInt64);
    const std::byte *last = nullptr;
    int last_number = 0;
    const auto is_sum = [&](const std::byte *sum, int number) {
        std::vector<std::int64_t> got(Agenda(number).count);
        std::memcpy(got.data(), sum, got.size() * sizeof got[0]);
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (got[i] != size * (size + 1) / 2 * (number + static_cast<std::int64_t>(i))) {
                return false;
            }
        }
        return true;
    };
    // Goes on after a failure, or the others would wait for ever.
    bool failed = false;
    const auto expect = [&](bool right, const char *what, int number) {
        if (!right && !failed) {
            ADD_FAILURE() << what << " of meeting " << number << " on rank " << rank;
        }
        failed = failed || !right;
    };
    for (int number = 1; number <= kMeetings; ++number) {
        const Agenda agenda(number);
        Meeting meeting;
        if (agenda.count == 0) {
            meeting.start(group, *messages, 1, Agenda::flags(number, rank));
        } else {
            std::byte *mine = Meeting::payload(group, messages->mine);
            for (std::size_t i = 0; i < agenda.count; ++i) {
                const std::int64_t part = Agenda::part(number, rank, i);
                std::memcpy(mine + 8 * i, &part, 8);
            }
            meeting.start(group, *messages, mine, 1, 8 * agenda.count, agenda.count, add,
                          Agenda::flags(number, rank));
        }
        Progress progress;
        while ((progress = meeting.step()) == Progress::kPending) {
            nodes.p2p[rank].progress(nodes.p2p[rank].context);
            std::this_thread::yield();
        }
        expect(progress == Progress::kDone, "the end", number);
        Flags all{};
        for (int other = 0; other < size; ++other) {
            all |= Agenda::flags(number, other);
        }
        expect(meeting.flags() == all, "the flags", number);
        if (random() % 8 == 0) {
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        }
        if (last != nullptr && sums_stay) {
            expect(is_sum(last, last_number), "the last sum, one meeting later,", last_number);
        }
        last = agenda.count == 0 ? nullptr : meeting.sum();
        last_number = number;
        expect(last == nullptr || is_sum(last, number), "the sum", number);
    }
}

void compare_calls(Nodes &nodes)
{
    nodes.network.allow_shorter();
    for (const auto &group : nodes.group) {
        group->compare_calls();
    }
}

hetcoll_call sum_of_ints(std::size_t count)
{
    hetcoll_call call{};
    call.kind = HETCOLL_INT32;
    call.op = HETCOLL_SUM;
    call.count = count;
    call.span = count * sizeof(int);
    call.dense = 1;
    return call;
}

class MeetingTest : public ::testing::TestWithParam<Ranks> {}; // the node of each rank

TEST_P(MeetingTest, EveryRankLearnsAllFlagsAndTheSumManyTimesInARow)
{
    for (const unsigned way : {0u, 1u, 2u, 3u}) {
        Nodes nodes(GetParam());
        if ((way & 1) != 0) {
            ASSERT_TRUE(nodes.make_pages());
        }
        if ((way & 2) != 0) {
            compare_calls(nodes);
        }
        std::vector<std::thread> ranks;
        for (int rank = 0; rank < nodes.size(); ++rank) {
            ranks.emplace_back([&nodes, rank] { attend(nodes, rank, 5); });
        }
        for (std::thread &rank : ranks) {
            rank.join();
        }
        EXPECT_EQ(nodes.network.unmatched(), 0);
    }
}

// Floating-point sums depend on the order: all ranks of all nodes must take the same.
TEST_P(MeetingTest, EveryRankGetsTheSameBits)
{
    Nodes nodes(GetParam());
    ASSERT_TRUE(nodes.make_pages());
    const int size = nodes.size();
    std::vector<Meeting> meeting(size);
    std::vector<std::unique_ptr<Messages>> messages;
    for (int rank = 0; rank < size; ++rank) {
        messages.push_back(std::make_unique<Messages>());
        std::byte *mine = Meeting::payload(*nodes.group[rank], messages[rank]->mine);
        const double part = 1.0 / (rank + 3);
        std::memcpy(mine, &part, sizeof part);
        meeting[rank].start(*nodes.group[rank], *messages[rank], mine, 1, 8, 1,
                            host_reduce(ReduceOp::kSum, ElementKind::kFloat64), Flags{});
    }
    std::vector<Progress> progress(size, Progress::kPending);
    for (int turn = 0; turn < 10000; ++turn) {
        for (int rank = 0; rank < size; ++rank) {
            if (progress[rank] == Progress::kPending) {
                progress[rank] = meeting[rank].step();
            }
        }
        nodes.network.rank(0).progress(nodes.network.rank(0).context);
    }
    for (int rank = 0; rank < size; ++rank) {
        ASSERT_EQ(progress[rank], Progress::kDone);
        EXPECT_EQ(std::memcmp(meeting[rank].sum(), meeting[0].sum(), 8), 0) << rank;
    }
}

// On each node at once, in float: 2048 + 1 + 1 + 1 is 2051 there, and 2048 a half at a time.
TEST_P(MeetingTest, HalvesOfANodeAreRoundedOnce)
{
    Nodes nodes(GetParam());
    ASSERT_TRUE(nodes.make_pages());
    const int size = nodes.size();
    std::vector<Meeting> meeting(size);
    std::vector<std::unique_ptr<Messages>> messages;
    std::vector<std::uint16_t> parts;
    for (int rank = 0; rank < size; ++rank) {
        messages.push_back(std::make_unique<Messages>());
        std::byte *mine = Meeting::payload(*nodes.group[rank], messages[rank]->mine);
        parts.push_back(nodes.group[rank]->is_leader() ? 0x6800 : 0x3c00);
        std::memcpy(mine, &parts.back(), 2);
        meeting[rank].start(*nodes.group[rank], *messages[rank], mine, 1, 2, 1,
                            {ReduceOp::kSumOnce, ElementKind::kFloat16}, Flags{});
    }
    std::vector<Progress> progress(size, Progress::kPending);
    for (int turn = 0; turn < 10000; ++turn) {
        for (int rank = 0; rank < size; ++rank) {
            if (progress[rank] == Progress::kPending) {
                progress[rank] = meeting[rank].step();
            }
        }
        nodes.network.rank(0).progress(nodes.network.rank(0).context);
    }
    std::vector<const void *> inputs;
    for (const std::uint16_t &part : parts) {
        inputs.push_back(&part);
    }
    std::uint16_t once = 0;
    host_fold(ReduceOp::kSumOnce, ElementKind::kFloat16)(&once, inputs.data(), inputs.size(), 1);
    for (int rank = 0; rank < size; ++rank) {
        ASSERT_EQ(progress[rank], Progress::kDone);
        EXPECT_EQ(std::memcmp(meeting[rank].sum(), meeting[0].sum(), 2), 0) << rank;
        if (nodes.group[rank]->nodes() == 1) {
            EXPECT_EQ(std::memcmp(meeting[rank].sum(), &once, 2), 0) << rank;
        }
    }
}

// One rank after the other brings another payload than the others, and another time all are right.
TEST_P(MeetingTest, EveryRankHearsThatOneIsInAnotherCallAndOneRankSaysSo)
{
    for (const bool pages : {true, false}) {
        Nodes nodes(GetParam());
        if (pages) {
            ASSERT_TRUE(nodes.make_pages());
        }
        compare_calls(nodes);
        const int size = nodes.size();
        std::vector<Meeting> meeting(size);
        std::vector<std::unique_ptr<Messages>> messages;
        for (int rank = 0; rank < size; ++rank) {
            messages.push_back(std::make_unique<Messages>());
        }
        const std::size_t counts[] = {0, 1, 3, 4096};
        for (int turn = 0; turn < 2 * 4 * size; ++turn) {
            const bool mistake = turn % 2 == 0;
            const int odd = turn / 8;
            for (int rank = 0; rank < size; ++rank) {
                const std::size_t count = mistake && rank == odd ? counts[turn / 2 % 4] : 2;
                NodeGroup &group = *nodes.group[rank];
                group.begin_call(signature_of(sum_of_ints(count)));
                std::byte *const mine = Meeting::payload(group, messages[rank]->mine);
                for (std::size_t i = 0; i < count; ++i) {
                    const int part = rank + 1;
                    std::memcpy(mine + 4 * i, &part, sizeof part);
                }
                meeting[rank].start(group, *messages[rank], mine, 1, 4 * count, count,
                                    host_reduce(ReduceOp::kSum, ElementKind::kInt32), Flags{});
            }
            std::vector<Progress> progress(size, Progress::kPending);
            for (int step = 0; step < 20000 && std::count(progress.begin(), progress.end(),
                                                          Progress::kPending) != 0;
                 ++step) {
                for (int rank = 0; rank < size; ++rank) {
                    if (progress[rank] == Progress::kPending) {
                        progress[rank] = meeting[rank].step();
                    }
                }
                nodes.network.rank(0).progress(nodes.network.rank(0).context);
            }
            int speakers = 0;
            for (int rank = 0; rank < size; ++rank) {
                ASSERT_EQ(progress[rank], Progress::kDone);
                ASSERT_EQ(any(meeting[rank].flags(), kCallsDiffer), mistake) << turn;
                if (!mistake) {
                    int sum = 0;
                    std::memcpy(&sum, meeting[rank].sum() + 4, sizeof sum);
                    ASSERT_EQ(sum, size * (size + 1) / 2);
                    continue;
                }
                ASSERT_EQ(meeting[rank].differences(), Differences::kCount);
                const auto calls = meeting[rank].different_calls();
                speakers += calls ? 1 : 0;
                if (calls) {
                    ASSERT_TRUE(calls->one.rank == odd || calls->other.rank == odd ||
                                nodes.group[odd]->leader_ranks().size() < nodes.group.size());
                    ASSERT_NE(calls->one.call, calls->other.call);
                }
            }
            ASSERT_EQ(speakers, mistake ? 1 : 0) << "turn " << turn << ", pages " << pages;
        }
        EXPECT_EQ(nodes.network.unmatched(), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Nodes, MeetingTest,
                         ::testing::Values(Ranks{0, 0}, Ranks{0, 0, 0}, Ranks{0, 1, 1},
                                           Ranks{0, 1, 0, 1}, Ranks{0, 1, 2}, Ranks{0, 0, 1, 1, 2},
                                           Ranks{1, 0, 0, 0, 0, 2, 2, 2}));

TEST(Meeting, ReportsTheCodeOfAFailedSend)
{
    Nodes nodes({0, 1});
    nodes.network.fail_send(1);
    Messages messages;
    Meeting meeting;
    meeting.start(*nodes.group[0], messages, 1, Flags{});
    EXPECT_EQ(meeting.step(), Progress::kFailed);
    EXPECT_EQ(meeting.code(), -7);
}

} // namespace
} // namespace hetcoll
