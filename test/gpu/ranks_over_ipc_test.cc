// N ranks that are processes and share one GPU over CUDA IPC: the whole core, over messages in
// shared memory. Runs on the emulated GPU in make check and on a real one in make check-gpu. Only
// the forked processes make CUDA calls.
#include "process_job.h"
#include "small_numbers.h"
#include "test_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>

namespace hetcoll::test {
namespace {

constexpr int kMostSeconds = 100; // of a job: a hang is a failure
const std::size_t kSmallLimit = hetcoll_default_settings().small_limit;
constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

#define HETCOLL_RETURN_IF_ERROR(expression)               \
    if (Status problem_ = (expression); !problem_.ok()) { \
        return problem_;                                  \
    }

// The state of device 0 that a process which ended has found.
struct Found {
    bool gpu = false;
    bool memory[5] = {};
};

const Found &found()
{
    static const Found all = [] {
        Found answer;
        for (int bit = 0; bit <= 5; ++bit) { // a rank's success is all that it can tell
            const auto asks = [bit](NetworkRank &) -> Status {
                auto gpu = Gpu::open(0);
                if (!gpu.ok()) {
                    return gpu.take_status();
                }
                return bit == 0 || has(**gpu, static_cast<MemoryType>(bit - 1))
                           ? Status()
                           : error(Errc::kUnsupported, "no such memory");
            };
            (bit == 0 ? answer.gpu : answer.memory[bit - 1]) =
                run_ranks(1, kMostSeconds, asks).ok();
            if (!answer.gpu) {
                break;
            }
        }
        return answer;
    }();
    return all;
}

// The state of each rank of a job.
class Rank {
public:
    explicit Rank(NetworkRank &network) : network_(network) {}

    Status open(const char *algorithm)
    {
        auto gpu = Gpu::open(0);
        if (!gpu.ok()) {
            return gpu.take_status();
        }
        gpu_ = std::move(*gpu);
        return use(algorithm);
    }
    // A process state and a communicator of its own.
    Status use(const char *algorithm)
    {
        comm_.reset();
        auto comm = RankCommunicator::create(network_, algorithm);
        if (!comm.ok()) {
            return comm.take_status();
        }
        comm_ = std::move(*comm);
        return {};
    }
    // One call on fresh memory; the result is compared byte by byte, and so is the input.
    Status reduce(hetcoll_kind kind, hetcoll_op op, std::size_t count, bool in_place,
                  MemoryType type = MemoryType::kPlain)
    {
        const std::size_t bytes = count * hetcoll_element_bytes(kind);
        const auto input = input_of(network_.rank(), kind, count, ++call_);
        auto send = TestMemory::allocate(*gpu_, type, bytes);
        auto recv = TestMemory::allocate(*gpu_, type, bytes);
        HETCOLL_RETURN_IF_ERROR(send.ok() ? recv.take_status() : send.take_status());
        HETCOLL_RETURN_IF_ERROR((*send)->write(input));
        HETCOLL_RETURN_IF_ERROR(
            (*recv)->write(in_place ? input : std::vector<unsigned char>(bytes, 0xee)));
        const void *from = in_place ? (*recv)->data() : (*send)->data();
        HETCOLL_RETURN_IF_ERROR(comm_->allreduce(from, (*recv)->data(), kind, op, count));
        const std::string what = std::to_string(bytes) + " bytes of kind " + std::to_string(kind) +
                                 (in_place ? ", in place" : "") + ", " + type_name(type);
        HETCOLL_RETURN_IF_ERROR(
            expect(**recv, result_of(network_.size(), kind, op, count, call_), "result", what));
        return expect(**send, input, "input", what);
    }
    [[nodiscard]] std::uint64_t counter(hetcoll_counter counter) const
    {
        return comm_->counter(counter);
    }
    [[nodiscard]] NetworkRank &network() const { return network_; }

private:
    static Status expect(const TestMemory &memory, const std::vector<unsigned char> &wanted,
                         const char *name, const std::string &what)
    {
        const auto got = memory.read(wanted.size());
        HETCOLL_RETURN_IF_ERROR(
            got.ok() ? Status() : error(Errc::kDriver, "%s", got.status().message().c_str()));
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            if ((*got)[i] != wanted[i]) {
                return error(Errc::kInvalid, "%s: byte %zu of the %s is %#x, not %#x", what.c_str(),
                             i, name, (*got)[i], wanted[i]);
            }
        }
        return {};
    }

    NetworkRank &network_;
    std::unique_ptr<Gpu> gpu_;
    std::unique_ptr<RankCommunicator> comm_;
    unsigned call_ = 0;
};

void expect_success(int ranks, const std::function<Status(Rank &)> &body)
{
    const Status status = run_ranks(ranks, kMostSeconds, [&](NetworkRank &network) {
        Rank rank(network);
        return body(rank);
    });
    EXPECT_TRUE(status.ok()) << status.message();
}

class RanksOverIpc : public ::testing::TestWithParam<int> {
protected:
    void SetUp() override
    {
        if (!found().gpu) {
            GTEST_SKIP() << "no CUDA driver, or no device";
        }
    }
};

struct Forced {
    const char *name;
    hetcoll_counter counter;
    bool small, large; // where it can run
};
constexpr Forced kForced[] = {
    {"recursive_doubling", HETCOLL_CALLS_RECURSIVE_DOUBLING, false, true},
    {"rabenseifner", HETCOLL_CALLS_RABENSEIFNER, false, true},
    {"ring", HETCOLL_CALLS_RING, false, true},
    {"one_shot", HETCOLL_CALLS_ONE_SHOT, true, true},
    {"two_shot", HETCOLL_CALLS_TWO_SHOT, true, true},
    {"leader", HETCOLL_CALLS_LEADER, true, true},
    {"hierarchical", HETCOLL_CALLS_HIERARCHICAL, false, true},
    {"host", HETCOLL_CALLS_HOST, true, false},
    {"copy_in", HETCOLL_CALLS_COPY_IN, true, false},
    {"ordered", HETCOLL_CALLS_ORDERED, true, true},
};

TEST_P(RanksOverIpc, EveryAlgorithmGivesTheExactSum)
{
    expect_success(GetParam(), [](Rank &rank) -> Status {
        HETCOLL_RETURN_IF_ERROR(rank.open("auto"));
        for (const Forced &forced : kForced) {
            HETCOLL_RETURN_IF_ERROR(rank.use(forced.name));
            // Ranks ask each other where their GPUs are in the first larger call.
            HETCOLL_RETURN_IF_ERROR(rank.reduce(HETCOLL_FLOAT32, HETCOLL_SUM, 5000, false));
            for (const std::size_t bytes : {std::size_t{8}, std::size_t{1004}, kSmallLimit,
                                            kSmallLimit + 4, 100 * kKiB + 12, kMiB, 4 * kMiB}) {
                if (!(bytes <= kSmallLimit ? forced.small : forced.large)) {
                    continue;
                }
                for (const bool in_place : {false, true}) {
                    const std::uint64_t before = rank.counter(forced.counter);
                    HETCOLL_RETURN_IF_ERROR(
                        rank.reduce(HETCOLL_FLOAT32, HETCOLL_SUM, bytes / 4, in_place));
                    if (rank.counter(forced.counter) != before + 1) {
                        return error(Errc::kInvalid, "%s did not serve %zu bytes", forced.name,
                                     bytes);
                    }
                }
            }
        }
        return {};
    });
}

TEST_P(RanksOverIpc, EveryKindIsExact)
{
    expect_success(GetParam(), [](Rank &rank) -> Status {
        HETCOLL_RETURN_IF_ERROR(rank.open("auto"));
        for (const char *algorithm : {"auto", "leader", "two_shot", "ring"}) {
            HETCOLL_RETURN_IF_ERROR(rank.use(algorithm));
            for (const hetcoll_kind kind :
                 {HETCOLL_UINT8, HETCOLL_INT32, HETCOLL_INT64, HETCOLL_FLOAT16, HETCOLL_BFLOAT16,
                  HETCOLL_FLOAT32, HETCOLL_FLOAT64}) {
                for (const std::size_t count : {1, 333, 4099, 50'021}) {
                    HETCOLL_RETURN_IF_ERROR(rank.reduce(kind, HETCOLL_SUM, count, false));
                    HETCOLL_RETURN_IF_ERROR(rank.reduce(kind, HETCOLL_MAX, count, true));
                }
            }
        }
        return {};
    });
}

// Addresses come back with other memory behind them; peers must not use what they had mapped.
TEST_P(RanksOverIpc, BuffersMayBeFreedAndAllocatedAnew)
{
    expect_success(GetParam(), [](Rank &rank) -> Status {
        HETCOLL_RETURN_IF_ERROR(rank.open("leader"));
        for (const char *algorithm : {"leader", "two_shot", "ring"}) {
            HETCOLL_RETURN_IF_ERROR(rank.use(algorithm));
            for (int round = 0; round < 20; ++round) {
                // The same size, another one, and of another size on every rank's heap.
                const std::size_t count = round % 3 == 0 ? 300'000 : 20'000 + 7'001u * round;
                HETCOLL_RETURN_IF_ERROR(
                    rank.reduce(HETCOLL_FLOAT32, HETCOLL_SUM, count, round % 2 == 0));
            }
            if (rank.network().size() > 1 && rank.counter(HETCOLL_BYTES_MAPPED) == 0 &&
                rank.network().rank() == 0) {
                return error(Errc::kInvalid, "%s mapped no peer's memory", algorithm);
            }
        }
        return {};
    });
}

TEST_P(RanksOverIpc, OtherMemoryIsServedToo)
{
    for (const MemoryType type :
         {MemoryType::kVmm, MemoryType::kVmmWithoutFd, MemoryType::kPool, MemoryType::kManaged}) {
        if (!found().memory[static_cast<int>(type)]) {
            std::printf("# the device has no %s memory\n", type_name(type));
            continue;
        }
        expect_success(GetParam(), [type](Rank &rank) -> Status {
            HETCOLL_RETURN_IF_ERROR(rank.open("auto"));
            for (const char *algorithm : {"leader", "two_shot", "one_shot", "ring"}) {
                HETCOLL_RETURN_IF_ERROR(rank.use(algorithm));
                for (const std::size_t count : {2, 2000, 100'001}) {
                    for (const bool in_place : {false, true}) {
                        HETCOLL_RETURN_IF_ERROR(
                            rank.reduce(HETCOLL_FLOAT32, HETCOLL_SUM, count, in_place, type));
                    }
                }
            }
            return {};
        });
    }
}

// Leader-reduce reads n inputs and writes n results in one kernel on one rank.
TEST_P(RanksOverIpc, OneRankOfALeaderReduceMovesAllBytes)
{
    expect_success(GetParam(), [](Rank &rank) -> Status {
        HETCOLL_RETURN_IF_ERROR(rank.open("leader"));
        HETCOLL_RETURN_IF_ERROR(rank.reduce(HETCOLL_FLOAT32, HETCOLL_SUM, 300'000, false));
        const std::uint64_t before = rank.counter(HETCOLL_BYTES_MAPPED);
        HETCOLL_RETURN_IF_ERROR(rank.reduce(HETCOLL_FLOAT32, HETCOLL_SUM, 300'000, false));
        const int size = rank.network().size();
        std::uint64_t mine = rank.counter(HETCOLL_BYTES_MAPPED) - before;
        std::vector<std::uint64_t> all(static_cast<std::size_t>(size));
        rank.network().gather(&mine, sizeof mine, all.data());
        std::uint64_t sum = 0, most = 0;
        for (const std::uint64_t bytes : all) {
            sum += bytes;
            most = std::max(most, bytes);
        }
        // The leader's own vectors are no peer's: 2(n-1) of the 2n vectors are.
        const std::uint64_t wanted = 2u * static_cast<std::uint64_t>(size - 1) * 1'200'000;
        return sum == wanted && most == wanted
                   ? Status()
                   : error(Errc::kInvalid, "%llu bytes by all, %llu by one, not %llu by one",
                           static_cast<unsigned long long>(sum),
                           static_cast<unsigned long long>(most),
                           static_cast<unsigned long long>(wanted));
    });
}

// With a sanitizer a rank takes several times as long.
std::vector<int> rank_counts()
{
    const char *sanitizer = std::getenv("HETCOLL_SANITIZER");
    return sanitizer != nullptr && *sanitizer != 0 ? std::vector<int>{2}
                                                   : std::vector<int>{2, 4, 8};
}
INSTANTIATE_TEST_SUITE_P(Ranks, RanksOverIpc, ::testing::ValuesIn(rank_counts()));

TEST(ProcessJob, ARankThatDiesEndsTheJob)
{
    const Status status = run_ranks(3, kMostSeconds, [](NetworkRank &rank) -> Status {
        rank.barrier();
        if (rank.rank() == 1) {
            std::_Exit(3);
        }
        rank.barrier(); // never returns
        return {};
    });
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "rank 1 of 3 ended with exit status 3");
}

TEST(ProcessJob, ARankThatDiesInACallEndsTheJob)
{
    if (!found().gpu) {
        GTEST_SKIP() << "no CUDA driver, or no device";
    }
    const Status status = run_ranks(3, kMostSeconds, [](NetworkRank &network) -> Status {
        Rank rank(network);
        HETCOLL_RETURN_IF_ERROR(rank.open("leader"));
        HETCOLL_RETURN_IF_ERROR(rank.reduce(HETCOLL_FLOAT32, HETCOLL_SUM, 100'000, false));
        if (network.rank() == 2) {
            std::_Exit(3); // the others wait for its flag
        }
        return rank.reduce(HETCOLL_FLOAT32, HETCOLL_SUM, 100'000, false);
    });
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "rank 2 of 3 ended with exit status 3");
}

TEST(ProcessJob, ARankThatHangsEndsTheJob)
{
    const Status status = run_ranks(2, 1, [](NetworkRank &rank) -> Status {
        if (rank.rank() == 0) {
            rank.barrier();
        }
        return {};
    });
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "rank 0 of 2 was not done after 1 s");
}

// Byte i of the message that `from` sends as its number `index` to `to`.
std::byte content(int from, int to, int index, std::size_t i)
{
    return static_cast<std::byte>(from * 31 + to * 7 + index * 13 + static_cast<int>(i % 251));
}

// Sends 40 messages to every rank, two tags in turn, and asks for the second tag's first.
Status exchange(NetworkRank &rank)
{
    constexpr int kMessages = 40;
    const hetcoll_p2p p2p = rank.table();
    const auto bytes_of = [](int index) {
        return static_cast<std::size_t>(index) * static_cast<std::size_t>(index) * 211;
    };
    struct Message {
        void *request;
        std::vector<std::byte> bytes;
        int peer, index;
    };
    std::vector<Message> sends, receives;
    for (int peer = 0; peer < rank.size(); ++peer) {
        for (int index = 0; index < kMessages; ++index) {
            Message send{nullptr, std::vector<std::byte>(bytes_of(index)), peer, index};
            for (std::size_t i = 0; i < send.bytes.size(); ++i) {
                send.bytes[i] = content(rank.rank(), peer, index, i);
            }
            sends.push_back(std::move(send));
        }
        for (int k = 0; k < kMessages; ++k) {
            const int index = k < kMessages / 2 ? 2 * k + 1 : 2 * (k - kMessages / 2);
            receives.push_back({nullptr, std::vector<std::byte>(bytes_of(index)), peer, index});
        }
    }
    const auto start_receive = [&](Message &m) {
        p2p.irecv(p2p.context, m.bytes.data(), m.bytes.size(), m.peer, m.index % 2, &m.request);
    };
    const std::size_t early = receives.size() / 3; // before the sends, the rest after them
    for (std::size_t r = 0; r < early; ++r) {
        start_receive(receives[r]);
    }
    for (Message &m : sends) {
        p2p.isend(p2p.context, m.bytes.data(), m.bytes.size(), m.peer, m.index % 2, &m.request);
    }
    for (int turn = 0; turn < 50; ++turn) {
        p2p.progress(p2p.context);
    }
    for (std::size_t r = early; r < receives.size(); ++r) {
        start_receive(receives[r]);
    }
    for (std::vector<Message> *some : {&receives, &sends}) {
        for (Message &m : *some) {
            int state = 0;
            while ((state = p2p.test(p2p.context, &m.request)) == 0) {
                p2p.progress(p2p.context);
            }
            const bool received = some == &receives;
            for (std::size_t i = 0; i < m.bytes.size() && received; ++i) {
                if (state != 1 || m.bytes[i] != content(m.peer, rank.rank(), m.index, i)) {
                    return error(Errc::kInvalid, "message %d of rank %d is wrong at %zu", m.index,
                                 m.peer, i);
                }
            }
        }
    }
    return {};
}

TEST(ProcessNetwork, MessagesMatchByPeerAndTagInOrder)
{
    for (const int ranks : {1, 2, 5}) {
        const Status status = run_ranks(ranks, kMostSeconds, exchange);
        EXPECT_TRUE(status.ok()) << status.message();
    }
}

TEST(ProcessNetwork, AMessageThatIsTooLongIsAnError)
{
    const Status status = run_ranks(1, kMostSeconds, [](NetworkRank &rank) -> Status {
        const hetcoll_p2p p2p = rank.table();
        const char text[] = "twelve bytes";
        char little[4] = "";
        void *send = nullptr, *receive = nullptr;
        p2p.isend(p2p.context, text, sizeof text, 0, 0, &send);
        p2p.irecv(p2p.context, little, sizeof little, 0, 0, &receive);
        p2p.progress(p2p.context);
        const int sent = p2p.test(p2p.context, &send);
        const int received = p2p.test(p2p.context, &receive);
        return sent == 1 && received == -15
                   ? Status()
                   : error(Errc::kInvalid, "the send answers %d, the receive %d", sent, received);
    });
    EXPECT_TRUE(status.ok()) << status.message();
}

} // namespace
} // namespace hetcoll::test
