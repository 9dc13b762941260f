// One rank runs out of host memory at each allocation of a call in turn: the reserve carries it to
// the call's end, so no rank waits for it and all have the sum. With HETCOLL_EVERY_ALLOCATION in
// the environment at each allocation indeed, which takes minutes; else at some.
#include "aggregator/server.h"
#include "aggregator/tcp_wire.h"
#include "base/spare_memory.h"
#include "engine/process/memory_reserve.h"
#include "test/unit/engine_communicators.h"
#include "test/unit/engine_streams.h"
#include "test/unit/failing_allocations.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <ostream>

namespace hetcoll::test {
namespace {

enum class Peers { kUnknown, kKnown };

// An aggregator on the loopback device, which has memory whatever the ranks have.
class OwnAggregator {
public:
    OwnAggregator()
        : key_file_(::testing::TempDir() + "hetcoll_no_memory_key." + std::to_string(getpid()))
    {
        const std::string secret = "0123456789abcdef";
        std::ofstream(key_file_) << secret << "\n";
        EXPECT_EQ(chmod(key_file_.c_str(), 0600), 0);
        auto wire = open_tcp_wire(
            {.listen = Endpoint{"127.0.0.1", 0}, .keys = {{kDefaultKeyName, secret}}});
        if (wire.ok()) { // else this build has no OpenSSL
            wire_ = std::move(*wire);
            endpoint_ = "127.0.0.1:" + std::to_string(wire_->port());
            server_.emplace(*wire_, ServerOptions{}, [](const std::string &) {});
        }
    }
    ~OwnAggregator() { unlink(key_file_.c_str()); }
    OwnAggregator(const OwnAggregator &) = delete;
    OwnAggregator &operator=(const OwnAggregator &) = delete;

    [[nodiscard]] bool runs() const { return server_.has_value(); }
    void serve() { server_->progress(0); }
    void tell(hetcoll_settings &settings) const
    {
        settings.aggregators = endpoint_.c_str();
        settings.aggregator_key = key_file_.c_str();
        settings.aggregator_copy = 64u << 10;
    }

private:
    std::string key_file_, endpoint_;
    std::unique_ptr<TcpWire> wire_;
    std::optional<Server> server_;
};

struct Case {
    const char *name;
    const char *algorithm = "auto";
    std::size_t count = 10000; // elements; the default is more than the host sums
    int collective = HETCOLL_ALLREDUCE;
    std::vector<Where> where = {Where::kDevice, Where::kDevice, Where::kDevice};
    std::vector<int> node_of = {0, 0, 0};
    Peers peers = Peers::kKnown;
    void (*change_settings)(hetcoll_settings &) = nullptr;
    void (*change_call)(hetcoll_call &) = nullptr;
    int kind = HETCOLL_INT32;
    bool aggregator = false;
    int queued = HETCOLL_NOT_QUEUED;
};

std::ostream &operator<<(std::ostream &out, const Case &of) { return out << of.name; }

hetcoll_settings settings_of(const Case &of)
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = of.algorithm;
    settings.chunk_bytes = 4096;
    settings.check = HETCOLL_CHECK_ON; // else nodes do not hear that a rank has none to begin
    if (of.change_settings != nullptr) {
        of.change_settings(settings);
    }
    return settings;
}

class ReserveTest : public ::testing::TestWithParam<Case> {
protected:
    static constexpr int kAll = -1;

    // Each rank has as many twos as its number + 1 says: their sum is exact in floats, too.
    void make_ranks()
    {
        const Case &of = GetParam();
        hetcoll_settings settings = settings_of(of);
        if (aggregator_) {
            aggregator_->tell(settings);
        }
        streams_.reset();
        ranks_.reset();
        ranks_ =
            std::make_unique<Communicators>(3, settings, [&of](std::vector<hetcoll_facts> &facts) {
                for (std::size_t rank = 0; rank < facts.size(); ++rank) {
                    facts[rank].identity.host += static_cast<std::uint64_t>(of.node_of[rank]);
                    facts[rank].identity.machine += static_cast<std::uint64_t>(of.node_of[rank]);
                }
            });
        ranks_->network().allow_shorter(); // of a rank that cannot begin
        ranks_->around_step([this](int rank, bool before) {
            if (aggregator_ && before) {
                aggregator_->serve();
            }
            if (shortage_ != nullptr && (rank == victim_ || victim_ == kAll)) {
                shortage_->turn(before);
            }
        });
        if (of.queued != HETCOLL_NOT_QUEUED) {
            streams_ = std::make_unique<AttachedStreams>(*ranks_, of.count * sizeof(int));
        }
        if (of.peers == Peers::kKnown) {
            run_call();
        }
    }
    void SetUp() override
    {
#ifdef __SANITIZE_ADDRESS__
        GTEST_SKIP() << "AddressSanitizer's operator new does not fail";
#endif
        if (GetParam().aggregator && !aggregator_.emplace().runs()) {
            GTEST_SKIP() << "this build has no OpenSSL";
        }
    }
    [[nodiscard]] int number(int value) const
    {
        float real = static_cast<float>(value);
        int bits = value;
        if (GetParam().kind == HETCOLL_FLOAT32) {
            std::memcpy(&bits, &real, sizeof bits);
        }
        return bits;
    }
    // All make the call, in place, in buffers of this call. True if it ends on all of them.
    bool run_call()
    {
        const Case &of = GetParam();
        vectors_.clear();
        for (int rank = 0; rank < 3; ++rank) {
            Numbers<int> &vector = vectors_.emplace_back(
                of.where[rank], std::vector<int>(of.count, number(2 * (rank + 1))));
            ranks_->previous(rank).output = std::vector<int>(of.count, number(12));
            ranks_->call(rank, vector, of.count, of.collective);
            hetcoll_call &made = ranks_->made(rank);
            made.kind = of.kind;
            made.queued = of.queued;
            if (of.change_call != nullptr) {
                of.change_call(made);
            }
        }
        return ranks_->run();
    }
    void expect_results(int result)
    {
        for (int rank = 0; rank < 3; ++rank) {
            ASSERT_EQ(ranks_->result(rank), result) << "rank " << rank;
            if (aggregator_ && result == HETCOLL_SUCCESS) {
                ASSERT_TRUE(ranks_->comm(rank).planner().aggregation().joined()) << "rank " << rank;
                ASSERT_GT(ranks_->counter(rank, HETCOLL_CALLS_IN_NETWORK), 0U);
            }
            if (result == HETCOLL_SUCCESS) {
                expect_data(rank);
            }
        }
    }
    void expect_data(int rank) const
    {
        const Case &of = GetParam();
        const std::vector<int> found = vectors_[rank].read();
        const std::size_t share = of.count / 3;
        for (std::size_t i = 0; i < of.count; ++i) {
            const int owner = static_cast<int>(i / share);
            switch (of.collective) {
            case HETCOLL_BCAST: ASSERT_EQ(found[i], number(2)); break;
            case HETCOLL_ALLGATHER: ASSERT_EQ(found[i], number(2 * (owner + 1))); break;
            case HETCOLL_REDUCE_SCATTER: ASSERT_TRUE(i >= share || found[i] == number(12)); break;
            case HETCOLL_REDUCE: ASSERT_TRUE(rank != 0 || found[i] == number(12)); break;
            default: ASSERT_EQ(found[i], number(12)) << "element " << i; break;
            }
        }
    }
    // From now on that rank's steps have this shortage; victim kAll: every rank's.
    void have(FailingAllocations &shortage, int victim)
    {
        shortage_ = &shortage;
        victim_ = victim;
    }
    void have_memory() { shortage_ = nullptr; }

    std::optional<OwnAggregator> aggregator_;
    FailingAllocations *shortage_ = nullptr;
    int victim_ = kAll;
    std::unique_ptr<Communicators> ranks_;
    std::unique_ptr<AttachedStreams> streams_;
    std::deque<Numbers<int>> vectors_;
};

TEST_P(ReserveTest, ARankThatRunsOutOfMemoryAnywhereEndsTheCallWithTheOthers)
{
    const bool every = std::getenv("HETCOLL_EVERY_ALLOCATION") != nullptr;
    std::size_t most = 0;
    for (const int victim : {0, 2}) {
        bool more = true;
        for (long nth = 1 + victim; more; nth += every ? 1 : nth) {
            SCOPED_TRACE("allocation " + std::to_string(nth) + " of rank " +
                         std::to_string(victim));
            make_ranks();
            {
                FailingAllocations shortage(nth, kReserveBytes);
                have(shortage, victim);
                ASSERT_TRUE(run_call());
                expect_results(HETCOLL_SUCCESS);
                have_memory();
                more = shortage.have_failed();
                most = std::max(most, shortage.most_taken());
            }
            if (HasFatalFailure()) {
                return;
            }
            ASSERT_TRUE(run_call()); // with a reserve again
            expect_results(HETCOLL_SUCCESS);
        }
    }
    EXPECT_LE(most * 4, kReserveBytes) << "little is left for larger communicators";
}

TEST(MemoryReserveTest, WhatCanBeDoneWithoutIsNotTakenFromIt)
{
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "AddressSanitizer's operator new does not fail";
#endif
    const MemoryReserve reserve;
    ASSERT_TRUE(MemoryReserve::fill());
    FailingAllocations shortage(1, kReserveBytes, Blocks::kAll);
    const UsesReserve uses_reserve;
    shortage.turn(true);
    const bool has_some_before = try_allocate(1000) != nullptr;
    void *const needed = ::operator new(1000, std::nothrow);
    const bool has_some_after = try_allocate(1000) != nullptr;
    shortage.turn(false);
    EXPECT_FALSE(has_some_before);
    EXPECT_NE(needed, nullptr);
    EXPECT_FALSE(has_some_after);
    ::operator delete(needed);
    ASSERT_TRUE(MemoryReserve::fill());
    EXPECT_NE(try_allocate(1000), nullptr);
}

TEST_P(ReserveTest, WithoutMemoryToFillTheReserveAllRanksReturnAnError)
{
    make_ranks();
    ASSERT_TRUE(MemoryReserve::give_up());
    {
        FailingAllocations shortage(1, 0, Blocks::kLarge);
        have(shortage, kAll);
        ASSERT_TRUE(run_call());
        expect_results(HETCOLL_ERROR_NO_MEMORY);
        have_memory();
    }
    ASSERT_TRUE(run_call());
    expect_results(HETCOLL_SUCCESS);
}

// Calls on host memory that need no operation.
class HostReserveTest : public ReserveTest {};

TEST_P(HostReserveTest, WithoutMemoryToChooseAnAlgorithmACallBecomesAnOperation)
{
    static std::array<std::array<float, 100>, 3> vectors;
    make_ranks();
    for (int rank = 0; rank < 3; ++rank) {
        vectors[rank].fill(2.0f * static_cast<float>(rank + 1));
        ranks_->call(rank, vectors[rank].data(), vectors[rank].data(), vectors[rank].size());
        ranks_->made(rank).kind = HETCOLL_FLOAT32;
    }
    {
        HostCalls host_calls(ranks_->comm(2));
        FailingAllocations shortage(1);
        shortage.turn(true);
        EXPECT_EQ(host_calls.try_serve(ranks_->made(2)), std::nullopt);
        EXPECT_TRUE(shortage.have_failed());
    }
    ASSERT_TRUE(ranks_->run());
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(ranks_->result(rank), HETCOLL_SUCCESS);
        EXPECT_EQ(std::count(vectors[rank].begin(), vectors[rank].end(), 12.0f),
                  static_cast<std::ptrdiff_t>(vectors[rank].size()));
    }
}

// As where calls of other communicators have the blocks that there were.
TEST_P(ReserveTest, WithoutMemoryForItsFramesACallFailsOnAllRanksAndTheNextOneIsRight)
{
    make_ranks();
    for (const int victim : {0, 2}) {
        {
            const FrameMemory::Loan kept = ranks_->process(victim).frame_memory().borrow();
            FailingAllocations shortage(1, sizeof(FrameMemory::Block) - 1); // messages need some
            have(shortage, victim);
            ASSERT_TRUE(run_call());
            expect_results(HETCOLL_ERROR_NO_MEMORY);
            have_memory();
        }
        ASSERT_TRUE(run_call());
        expect_results(HETCOLL_SUCCESS);
    }
}

const Case kCases[] = {
    {.name = "First", .peers = Peers::kUnknown},
    {.name = "FirstSmall", .count = 100, .peers = Peers::kUnknown},
    {.name = "FirstOnTwoNodes", .node_of = {0, 0, 1}, .peers = Peers::kUnknown},
    {.name = "Small", .count = 100},
    {.name = "OneShot", .algorithm = "one_shot"},
    {.name = "TwoShot", .algorithm = "two_shot"},
    {.name = "Leader", .algorithm = "leader"},
    {.name = "CopyIn", .algorithm = "copy_in"},
    {.name = "Ring", .algorithm = "ring"},
    {.name = "RecursiveDoubling", .algorithm = "recursive_doubling"},
    {.name = "Rabenseifner", .algorithm = "rabenseifner"},
    {.name = "Tree", .algorithm = "tree"},
    {.name = "Weighted", .algorithm = "weighted"},
    {.name = "Hierarchical", .algorithm = "hierarchical", .node_of = {0, 0, 1}},
    {.name = "Messages",
     .algorithm = "ring",
     .change_settings = [](hetcoll_settings &settings) { settings.ipc = 0; }},
    {.name = "InNetwork", .algorithm = "in_network", .count = 20001, .aggregator = true},
    {.name = "FirstInNetwork",
     .algorithm = "in_network",
     .peers = Peers::kUnknown,
     .aggregator = true},
    {.name = "InNetworkOnTwoNodes",
     .algorithm = "in_network",
     .node_of = {0, 0, 1},
     .aggregator = true},
    {.name = "MixedInNetwork",
     .algorithm = "in_network",
     .where = {Where::kDevice, Where::kHost, Where::kDevice},
     .aggregator = true},
    {.name = "AdaptedChunk",
     .algorithm = "ring",
     .change_settings =
         [](hetcoll_settings &settings) {
             settings.adapt_chunk = true;
             settings.chunk_bytes = 0;
         }},
    {.name = "Ordered",
     .change_settings = [](hetcoll_settings &settings) { settings.reproducible = true; },
     .kind = HETCOLL_FLOAT32},
    {.name = "FixedPoint",
     .change_settings = [](hetcoll_settings &settings) { settings.fixed_point = 8; },
     .kind = HETCOLL_FLOAT32},
    {.name = "Mixed", .where = {Where::kDevice, Where::kHost, Where::kDevice}},
    {.name = "Host", .where = {Where::kHost, Where::kHost, Where::kHost}},
    {.name = "HostNonblocking",
     .where = {Where::kHost, Where::kHost, Where::kHost},
     .change_call = [](hetcoll_call &call) { call.previous_allreduce = nullptr; }},
    {.name = "Staged",
     .change_call =
         [](hetcoll_call &call) {
             call.kind = -1;
             call.reason = HETCOLL_REASON_TYPE;
         }},
    {.name = "Broadcast", .count = 12000, .collective = HETCOLL_BCAST},
    {.name = "Reduce",
     .count = 12000,
     .collective = HETCOLL_REDUCE,
     .change_call = [](hetcoll_call &) {}},
    {.name = "Allgather", .count = 12000, .collective = HETCOLL_ALLGATHER},
    {.name = "ReduceScatter", .count = 12000, .collective = HETCOLL_REDUCE_SCATTER},
    {.name = "Queued", .queued = HETCOLL_QUEUED},
    {.name = "QueuedSmall", .count = 100, .queued = HETCOLL_QUEUED},
    {.name = "QueuedReduceScatter",
     .count = 12000,
     .collective = HETCOLL_REDUCE_SCATTER,
     .queued = HETCOLL_QUEUED},
};

INSTANTIATE_TEST_SUITE_P(Ordered, HostReserveTest,
                         ::testing::Values(Case{
                             .name = "Ordered",
                             .change_settings =
                                 [](hetcoll_settings &settings) { settings.reproducible = true; },
                             .kind = HETCOLL_FLOAT32}));
INSTANTIATE_TEST_SUITE_P(Ways, ReserveTest, ::testing::ValuesIn(kCases),
                         [](const auto &of) { return std::string(of.param.name); });

} // namespace
} // namespace hetcoll::test
