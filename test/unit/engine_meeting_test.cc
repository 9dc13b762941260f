#include "engine/meeting/meeting.h"

#include "engine/meeting/flags.h"
#include "engine_nodes.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

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
constexpr std::size_t kSlotCount = ControlPage::kSlotPayloadBytes / sizeof(std::int64_t);

// The contribution to meeting `number`: the same numbers on every rank.
struct Agenda {
    explicit Agenda(int number)
        : count(number % 3 == 0   ? 0
                : number % 7 == 1 ? kMostCount
                : number % 7 == 2 ? kSlotCount + static_cast<std::size_t>(number % 2)
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
    const bool in_pages = group.uses_pages() && group.local_size() > 1;
    bool sums_stay = false; // those that went by messages do not
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
    // Goes on after a failure, or the others would wait forever.
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
            std::byte *mine = Meeting::payload(group, 8 * agenda.count, messages->mine);
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
        sums_stay = last != nullptr && in_pages && last != messages->mine;
        last_number = number;
        expect(last == nullptr || is_sum(last, number), "the sum", number);
    }
}

void compare_calls(Nodes &nodes)
{
    nodes.network.allow_shorter();
    for (const auto &group : nodes.group) {
        group->own_call().compare_all();
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
        std::byte *mine = Meeting::payload(*nodes.group[rank], 8, messages[rank]->mine);
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

// On each node in one sum, in float: 2048 + 1 + 1 + 1 is 2051 there, and 2048 a half at a time.
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
        std::byte *mine = Meeting::payload(*nodes.group[rank], 2, messages[rank]->mine);
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
                group.own_call().begin(signature_of(sum_of_ints(count)));
                std::byte *const mine = Meeting::payload(group, 4 * count, messages[rank]->mine);
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

// All ranks come to a meeting that sums `count` ones: the messages that they have sent; -1: it did
// not end, or a sum or a flag is wrong.
int sum_ones(Nodes &nodes, std::size_t count)
{
    const int sent = nodes.network.sends();
    std::vector<Meeting> meeting(nodes.group.size());
    std::vector<std::unique_ptr<Messages>> messages;
    for (std::size_t rank = 0; rank < nodes.group.size(); ++rank) {
        NodeGroup &group = *nodes.group[rank];
        messages.push_back(std::make_unique<Messages>());
        group.own_call().begin(signature_of(sum_of_ints(count)));
        std::byte *const mine = Meeting::payload(group, 4 * count, messages[rank]->mine);
        const std::vector<int> ones(count, 1);
        std::memcpy(mine, ones.data(), 4 * count);
        meeting[rank].start(group, *messages[rank], mine, 1, 4 * count, count,
                            host_reduce(ReduceOp::kSum, ElementKind::kInt32), kHostMemory);
    }
    std::vector<Progress> progress(nodes.group.size(), Progress::kPending);
    for (int step = 0;
         step < 20000 && std::count(progress.begin(), progress.end(), Progress::kPending) != 0;
         ++step) {
        for (std::size_t rank = 0; rank < meeting.size(); ++rank) {
            if (progress[rank] == Progress::kPending) {
                progress[rank] = meeting[rank].step();
            }
        }
        nodes.network.rank(0).progress(nodes.network.rank(0).context);
    }
    for (std::size_t rank = 0; rank < meeting.size(); ++rank) {
        const std::vector<int> right(count, nodes.size());
        if (progress[rank] != Progress::kDone || meeting[rank].flags() != kHostMemory ||
            std::memcmp(meeting[rank].sum(), right.data(), 4 * count) != 0) {
            return -1;
        }
    }
    return nodes.network.unmatched() == 0 ? nodes.network.sends() - sent : -1;
}

constexpr std::size_t kSlotInts = ControlPage::kSlotPayloadBytes / sizeof(int);

std::size_t pages_in_memory(const std::byte *begin, const std::byte *end)
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto *const first =
        reinterpret_cast<std::byte *>(reinterpret_cast<std::uintptr_t>(begin) / page * page);
    const auto bytes = static_cast<std::size_t>(end - first);
    std::vector<unsigned char> pages((bytes + page - 1) / page);
    EXPECT_EQ(mincore(first, bytes, pages.data()), 0);
    return static_cast<std::size_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char one) { return one % 2 != 0; }));
}

TEST(Messages, TakeNoMemoryUntilTheyAreUsed)
{
    const Messages messages;
    const std::byte *const begin = messages.mine - Exchange::kHeaderBytes;
    const std::byte *const end = messages.theirs + ControlPage::kPayloadBytes;
    EXPECT_EQ(pages_in_memory(begin, end), 0U);
    *messages.mine = {};
    EXPECT_EQ(pages_in_memory(begin, end), 1U);
}

// A page that makes no room for what most communicators never sum.
TEST(Meeting, VectorsUpToAKilobyteTakeAtMostSixteenOfSharedMemoryARank)
{
    Nodes nodes({0, 0, 0, 0});
    ASSERT_TRUE(nodes.make_pages());
    EXPECT_EQ(sum_ones(nodes, kSlotInts), 0);
    for (const auto &group : nodes.group) {
        EXPECT_LE(SharedPage::taken(group->page().memory().bytes()), 4u * 16 * 1024);
        EXPECT_EQ(group->page().rooms().bytes(), 0u);
    }
}

TEST(Meeting, TheFirstLargerVectorMakesRoomsThatTheOthersUse)
{
    Nodes nodes({0, 0, 0});
    ASSERT_TRUE(nodes.make_pages());
    EXPECT_EQ(sum_ones(nodes, kSlotInts + 1), 0);
    const std::uint32_t meetings = nodes.group[0]->meetings();
    const void *const rooms = nodes.group[0]->page().rooms().data();
    ASSERT_NE(rooms, nullptr);
    EXPECT_EQ(sum_ones(nodes, kSlotInts + 1), 0);
    EXPECT_EQ(sum_ones(nodes, 8 * kSlotInts), 0);
    EXPECT_EQ(nodes.group[0]->meetings(), meetings + 2);
    EXPECT_EQ(nodes.group[0]->page().rooms().data(), rooms);
}

// Whose process has no more for pages: one rank after the other.
TEST_P(MeetingTest, WhereARankCanPayForNoRoomAllSumPieceByPiece)
{
    for (int poor = 0; poor < static_cast<int>(GetParam().size()); ++poor) {
        Nodes nodes(GetParam());
        const int ranks = nodes.group[poor]->local_size();
        ShmBudget all(1);
        const std::size_t page = ShmBudget::part(ControlPage::bytes(ranks), ranks);
        ShmBudget budget(static_cast<int>(all.limit() / (2 * page))); // for one page and no rooms
        nodes.group[poor] =
            std::make_unique<NodeGroup>(nodes.p2p[poor], nodes.processes, 0, &budget);
        ASSERT_TRUE(nodes.make_pages());
        EXPECT_EQ(nodes.group[poor]->uses_pages(), nodes.group[poor]->most_ranks_on_a_node() > 1);
        for (int turn = 0; turn < 2; ++turn) {
            EXPECT_GE(sum_ones(nodes, 8 * kSlotInts), 0) << poor;
            EXPECT_GE(sum_ones(nodes, 2 * kSlotInts + 1), 0) << poor;
            EXPECT_GE(sum_ones(nodes, kSlotInts), 0) << poor;
        }
        EXPECT_EQ(nodes.group[poor]->has_room(2 * ControlPage::kSlotPayloadBytes),
                  ranks == 1 && nodes.group[poor]->uses_pages());
        const int leader = nodes.group[poor]->local_ranks()[0];
        EXPECT_EQ(nodes.group[leader]->problem().take_shortage(), ranks > 1); // for all of its node
        EXPECT_FALSE(nodes.group[leader]->problem().take_shortage());
    }
}

INSTANTIATE_TEST_SUITE_P(Nodes, MeetingTest,
                         ::testing::Values(Ranks{0, 0}, Ranks{0, 0, 0}, Ranks{0, 1, 1},
                                           Ranks{0, 1, 0, 1}, Ranks{0, 1, 2}, Ranks{0, 0, 1, 1, 2},
                                           Ranks{1, 0, 0, 0, 0, 2, 2, 2}));

hetcoll_call numbered(int count, unsigned number)
{
    hetcoll_call call = sum_of_ints(count);
    call.number = number;
    return call;
}
CallSignature barrier(unsigned number) { return signature_of_move(HETCOLL_BARRIER, 0, 0, number); }

// All three ranks of a node, in one call of each. Returns whether their sum is right.
bool meets(Nodes &nodes, unsigned number)
{
    Messages messages[3];
    Meeting meeting[3];
    for (int rank = 0; rank < 3; ++rank) {
        nodes.group[rank]->own_call().begin(signature_of(numbered(2, number)));
        meeting[rank].start(*nodes.group[rank], messages[rank], 1, kHostMemory);
    }
    bool right = true;
    for (Meeting &one : meeting) {
        right = one.step() == Progress::kDone && one.flags() == kHostMemory && right;
    }
    return right;
}

struct ComparingNode : Nodes {
    ComparingNode() : Nodes(std::vector<int>{0, 0, 0})
    {
        compare_calls(*this);
        EXPECT_TRUE(make_pages());
    }
};

TEST(Meeting, ARankThatHasHandedOnAnotherCallIsNotWaitedFor)
{
    ComparingNode nodes;
    ASSERT_TRUE(meets(nodes, 1));
    Messages messages[3];
    Meeting meeting[3];
    for (const int rank : {0, 1}) {
        nodes.group[rank]->own_call().begin(signature_of(numbered(2, 2)));
        meeting[rank].start(*nodes.group[rank], messages[rank], 1, kHostMemory);
        EXPECT_EQ(meeting[rank].step(), Progress::kPending);
    }
    EXPECT_FALSE(nodes.group[2]->handed_on().tell(barrier(2))); // it has to look
    const auto begun = nodes.group[2]->handed_on().begun_instead(barrier(2));
    ASSERT_TRUE(begun);
    EXPECT_EQ(begun->call, signature_of(numbered(2, 2)));
    for (const int rank : {0, 1}) {
        Progress progress = Progress::kPending;
        for (int poll = 0; poll < 64 && progress == Progress::kPending; ++poll) {
            progress = meeting[rank].step();
        }
        ASSERT_EQ(progress, Progress::kDone);
        EXPECT_TRUE(any(meeting[rank].flags(), kCallsDiffer));
        EXPECT_EQ(meeting[rank].differences(), Differences::kCollective);
        const auto calls = meeting[rank].different_calls();
        ASSERT_TRUE(calls);
        EXPECT_TRUE(calls->handed_on);
        EXPECT_EQ(calls->other.rank, 2);
        EXPECT_EQ(calls->other.call, barrier(2));
    }
    EXPECT_TRUE(meets(nodes, 3)) << "the next call";
}

TEST(Meeting, ARankThatHasHandedOnAnEarlierCallIsWaitedFor)
{
    ComparingNode nodes;
    Messages messages;
    Meeting meeting;
    nodes.group[0]->own_call().begin(signature_of(numbered(2, 2)));
    meeting.start(*nodes.group[0], messages, 1, kHostMemory);
    static_cast<void>(nodes.group[2]->handed_on().tell(barrier(1)));
    for (int poll = 0; poll < 100; ++poll) {
        ASSERT_EQ(meeting.step(), Progress::kPending);
    }
}

TEST(Meeting, TheLaterOfTwoRanksThatHandOnDifferentCallsSeesTheOther)
{
    ComparingNode nodes;
    const CallSignature bcast = signature_of_move(HETCOLL_BCAST, 8, 0, 1);
    EXPECT_TRUE(nodes.group[0]->handed_on().tell(barrier(1)));
    EXPECT_TRUE(nodes.group[1]->handed_on().tell(barrier(1)));
    EXPECT_FALSE(nodes.group[2]->handed_on().tell(bcast));
    const auto begun = nodes.group[2]->handed_on().begun_instead(bcast);
    ASSERT_TRUE(begun);
    EXPECT_EQ(begun->call, barrier(1));
}

TEST(Meeting, ARankThatIsInAHandedOnCallSeesWhereTheOthersAre)
{
    ComparingNode nodes;
    ASSERT_TRUE(meets(nodes, 1));
    const HandedOn &own = nodes.group[0]->handed_on();
    EXPECT_TRUE(nodes.group[0]->handed_on().tell(barrier(2)));
    EXPECT_FALSE(own.place_of(1, barrier(2)).has_come);
    EXPECT_TRUE(nodes.group[1]->handed_on().tell(barrier(2)));
    EXPECT_TRUE(own.place_of(1, barrier(2)).has_come);
    EXPECT_FALSE(own.place_of(1, barrier(2)).call);
    EXPECT_TRUE(nodes.group[1]->handed_on().tell(barrier(3)));
    EXPECT_TRUE(own.place_of(1, barrier(2)).has_come) << "and gone on";
    EXPECT_FALSE(own.place_of(2, barrier(2)).has_come);
    const CallSignature bcast = signature_of_move(HETCOLL_BCAST, 8, 0, 2);
    EXPECT_FALSE(nodes.group[2]->handed_on().tell(bcast));
    EXPECT_EQ(own.place_of(2, barrier(2)).call, bcast);
}

TEST(Meeting, ARankThatIsInAHandedOnCallSeesWhoWaitsInAnotherOne)
{
    ComparingNode nodes;
    ASSERT_TRUE(meets(nodes, 1));
    const HandedOn &own = nodes.group[0]->handed_on();
    EXPECT_TRUE(nodes.group[0]->handed_on().tell(barrier(2)));
    Messages messages;
    Meeting meeting;
    nodes.group[1]->own_call().begin(signature_of(numbered(2, 2)));
    meeting.start(*nodes.group[1], messages, 1, kHostMemory);
    EXPECT_EQ(meeting.step(), Progress::kPending);
    EXPECT_EQ(own.place_of(1, barrier(2)).call, signature_of(numbered(2, 2)));
}

// A nonblocking operation's meeting may end while a rank is in the call.
TEST(Meeting, AMeetingWhileARankIsInAHandedOnCallChangesNoPlace)
{
    ComparingNode nodes;
    for (const int rank : {0, 1}) {
        EXPECT_TRUE(nodes.group[rank]->handed_on().tell(barrier(1)));
    }
    ASSERT_TRUE(meets(nodes, 2));
    EXPECT_TRUE(nodes.group[0]->handed_on().place_of(1, barrier(1)).has_come);
    EXPECT_TRUE(nodes.group[2]->handed_on().tell(barrier(1)));
    EXPECT_TRUE(nodes.group[0]->handed_on().place_of(2, barrier(1)).has_come);
}

// A rank that roots broadcasts waits for nobody, so it may be far ahead.
TEST(Meeting, ACallOfALateRankIsNotTakenForOneOfLaterNumber)
{
    ComparingNode nodes;
    EXPECT_TRUE(nodes.group[2]->handed_on().tell(barrier(7)));
    for (const std::uint32_t later : {0x10u, 0x10000u, 0x40000000u}) {
        const CallSignature bcast = signature_of_move(HETCOLL_BCAST, 8, 0, 7 + later);
        EXPECT_TRUE(nodes.group[0]->handed_on().tell(bcast)) << later;
        EXPECT_FALSE(nodes.group[0]->handed_on().begun_instead(bcast)) << later;
        EXPECT_FALSE(nodes.group[0]->handed_on().place_of(2, bcast).has_come) << later;
        EXPECT_FALSE(nodes.group[0]->handed_on().place_of(2, bcast).call) << later;
    }
    EXPECT_EQ(nodes.group[0]->handed_on().last_of(2), barrier(7));
}

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
