// Whole calls over mapped memory as engine/call makes them, in everything that C++ allows:
// Operation with its coroutines, from the first announcement to the result. The stand-ins for the
// rest of hetcoll is stand_in/engine/communicator/communicator.h. A rank may die before any of its
// stores, which are all that others see of it, or the communicator may be revoked at any time.
#include "gpu.h"
#include "ranks.h"

#include "engine/call/operation.h"
#include "engine/call/protocols.h"
#include "engine/process/memory_reserve.h"
#include "schedule/algorithms.h"

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <new>

// Threads must not allocate: what they leave of an execution stays behind (explorer.h).
void *operator new(std::size_t bytes)
{
    model::require(false, "a call allocates nothing");
    void *const memory = std::malloc(bytes);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

namespace hetcoll {

// The protocol of calls here. All memory is a GPU's.
Task<int> protocol_of(Call &call, const hetcoll_call &)
{
    call.bytes = call.args->span;
    call.buffers.in = call.args->send;
    call.buffers.out = call.args->recv;
    call.buffers.send.kind = call.buffers.recv.kind = MemoryKind::kDevice;
    call.flags = kDeviceMemory;
    return allreduce(call);
}
Choice choose_way(Call &, Means)
{
    Choice choice;
    choice.algorithm = Algorithm::kTwoShot;
    return choice;
}
bool uses_mapping(const Call &, const Choice &) noexcept { return true; }
Timed find_chunk(Call &, Choice &) { return {}; }
Arrivals *arrivals_of(Call &) noexcept { return nullptr; }
void take_arrivals(Call &, std::span<const std::uint64_t>) {}
bool is_small_user_op(const Call &) { return false; }
bool Call::is_small() const noexcept { return false; }
bool is_float8_sum(const Call &) noexcept { return false; }
bool runs_on_host(const Call &, Flags) noexcept { return false; }
bool needs_own_vector(Call &) { return false; }
bool should_join(const Call &) { return false; }

// Functions that no call here reaches.
namespace {

Task<int> no_way(Call &)
{
    model::require(false, "the call goes by mapped memory");
    co_return HETCOLL_ERROR_DEVICE;
}

} // namespace

Task<int> alone(Call &call) { return no_way(call); }
Task<int> host(Call &call) { return no_way(call); }
Task<int> staged(Call &call, Flags) { return no_way(call); }
Task<int> in_network(Call &call, Choice) { return no_way(call); }
Task<int> as_floats(Call &call) { return no_way(call); }
Task<int> with_own_vector(Call &call) { return no_way(call); }
bool joins(const Call &) noexcept { return false; }
Polled join(Call &call)
{
    return Polled({[](Call &) { return true; }, call});
}
void start_finding_peers(Call &) {}
bool poll_peers(Call &) { return true; }
void tell_new_device(Call &) {}
bool peers_are_known(const Call &) noexcept { return true; }
bool is_known_device(const Call &) noexcept { return true; }
Carrier *carrier_of(const Call &, const Choice &) noexcept { return nullptr; }
void Call::look_for_freed(bool) noexcept {}
void note_unmapped(Call &, const Status &) {}
void borrow_for_mixed(Call &) {}
const Scratch *reserved_memory(const Call &) noexcept { return nullptr; }
bool reserved_is_mapped(const Call &) noexcept { return false; }
void must_stage(Call &, const Status &) { model::require(false, "no driver call fails"); }
const BuiltSchedule &schedule_of(const Call &, const Choice &)
{
    static const BuiltSchedule none;
    return none;
}
void Call::start_copy(void *, const void *, std::size_t, const PointerInfo &)
{
    model::require(false, "the vectors are mapped where they are");
}
const char *Operation::place() const noexcept { return ""; }
void Operation::look_at_wait() {}

std::optional<int> Refusal::step()
{
    model::require(false, "there is memory");
    return HETCOLL_ERROR_NO_MEMORY;
}

// A bounce is the rank's.
bool try_borrow_bounce(Call &call)
{
    if (call.work.device == nullptr) {
        call.work.device.reset(&call.comm.bounce);
    }
    return true;
}
Polled make_ready(Call &call) noexcept { return Polled({try_borrow_bounce, call}); }
bool Call::borrow_frames() noexcept
{
    frames.use(comm.frames);
    return true;
}
void Call::give_back(int) noexcept
{
    model::require(work.device == nullptr || !work.device->kernel.is_running(),
                   "a kernel has ended before its call");
    static_cast<void>(work.device.release());
}

CallReport::CallReport(Communicator &comm) noexcept : comm_(comm), process_(comm) {}
void CallReport::count(hetcoll_counter, std::uint64_t) noexcept {}
const Log &CallReport::log() const noexcept
{
    static const Log to_nobody;
    return to_nobody;
}
void CallReport::begin(const hetcoll_call &) noexcept {}
void CallReport::serve(hetcoll_counter) noexcept {}
void CallReport::serve(Algorithm) noexcept {}
void CallReport::tell_gpu(const PointerInfo &) noexcept {}
void CallReport::end(int, Flags) noexcept {}

} // namespace hetcoll

namespace model {
namespace {

using namespace hetcoll;

constexpr int kCount = 6;             // elements, an equal share for each rank's kernel
constexpr int kStoresOfTwoCalls = 60; // that a rank makes at most, and some more

struct Setting {
    int ranks;
    int calls = 1;
    Streams streams = Streams::kEarly;
    bool new_buffers = false;               // the ranks agree on having mapped
    bool may_break = false;                 // ranks may die, or one may revoke the communicator
    bool revoked = false;                   // by a thread that is not a rank, at any time
    int dies_at = 0;                        // the last rank, before that store; 0: it does not
    Options options{.mode = Mode::kStates}; // others for what is too much to see all of it
};

struct Rank {
    alignas(64) std::int64_t input[kCount], output[kCount];
};

class Calls {
public:
    explicit Calls(const Setting &setting)
        : setting_(setting), job_(std::vector<int>(static_cast<std::size_t>(setting.ranks), 0)),
          ranks_(static_cast<std::size_t>(setting.ranks))
    {
        for (int rank = 0; rank < setting.ranks; ++rank) {
            Rank &self = ranks_[rank];
            const std::string name = "rank" + std::to_string(rank);
            share(self.input, sizeof self.input, name + ".input");
            share(self.output, sizeof self.output, name + ".output");
            comms_.emplace_back(*job_.group[rank], *job_.messages[rank], p2p_of(rank),
                                setting.streams, setting.new_buffers);
        }
    }

    [[nodiscard]] Report explore_all()
    {
        Threads threads;
        for (int rank = 0; rank < setting_.ranks; ++rank) {
            threads.emplace_back([this, rank] { live(rank); });
        }
        if (setting_.revoked) {
            threads.emplace_back([this] { deaths_.tell_all(); });
        }
        Options options = setting_.options;
        options.turns = setting_.may_break;
        if (setting_.dies_at != 0) {
            options.dies = setting_.ranks - 1;
            options.at_store = static_cast<std::uint64_t>(setting_.dies_at);
            options.dying = [this] { deaths_.die(setting_.ranks - 1); };
        }
        return explore(threads, options);
    }

private:
    // Calls here send no messages.
    [[nodiscard]] hetcoll_p2p p2p_of(int rank)
    {
        hetcoll_p2p p2p{};
        p2p.context = deaths_.of(rank);
        p2p.rank = rank;
        p2p.size = setting_.ranks;
        p2p.broken = setting_.may_break ? Deaths::code_of : nullptr;
        return p2p;
    }

    void live(int rank)
    {
        for (int number = 0; number < setting_.calls; ++number) {
            if (!call(rank, number)) {
                break;
            }
        }
        if (setting_.dies_at != 0 && rank == setting_.ranks - 1) {
            deaths_.die(rank);
        }
    }

    // One MPI_Allreduce. The buffers are the application's before and after it: a race with whoever
    // touches them then.
    [[nodiscard]] bool call(int rank, int number)
    {
        Rank &self = ranks_[rank];
        for (int i = 0; i < kCount; ++i) {
            self.input[i] = value(number, rank, i);
            self.output[i] = -1;
        }
        hetcoll_call call{};
        call.send = self.input;
        call.recv = self.output;
        call.kind = HETCOLL_INT64;
        call.op = HETCOLL_SUM;
        call.count = kCount;
        call.span = call.data_bytes = sizeof self.input;
        call.dense = 1;
        call.tag = HETCOLL_TAGS;
        Operation operation(comms_[rank], call);
        while (!operation.step()) {
            wait();
        }
        if (operation.result() != HETCOLL_SUCCESS) {
            require(operation.result() == Deaths::kCode, "an error because ranks may not come");
            say("call has failed:", static_cast<std::uint64_t>(number));
        }
        for (int i = 0; i < kCount; ++i) {
            require(self.output[i] == sum_of(number, setting_.ranks, i) ||
                        operation.result() != HETCOLL_SUCCESS,
                    "the sum");
            self.input[i] = -1;
        }
        return operation.result() == HETCOLL_SUCCESS;
    }

    const Setting setting_;
    MemoryReserve reserve_; // filled before the first call
    Job job_;
    Deaths deaths_{job_};
    std::vector<Rank> ranks_;
    std::deque<Communicator> comms_;
};

Report explore_all(const Setting &setting)
{
    return (new Calls(setting))->explore_all(); // its pages live until the program ends
}

class OperationModel : public ::testing::TestWithParam<Streams> {};
INSTANTIATE_TEST_SUITE_P(Streams, OperationModel,
                         ::testing::Values(Streams::kEarly, Streams::kLate));

TEST_P(OperationModel, TwoRanks)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 2, .streams = GetParam()})));
}

TEST_P(OperationModel, TwoRanksWithNewBuffers)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 2, .streams = GetParam(), .new_buffers = true})));
}

// Before each of its stores, up to the one that it does not make any more.
void expect_survivors(Setting setting)
{
    for (setting.dies_at = 1;; ++setting.dies_at) {
        const Report report = explore_all(setting);
        ASSERT_TRUE(proved(report)) << "before its store number " << setting.dies_at;
        if (report.deaths == 0) {
            break;
        }
    }
}

TEST_P(OperationModel, OneOfTwoRanksDies)
{
    expect_survivors({.ranks = 2, .streams = GetParam(), .may_break = true});
}

// Random ones find mistakes and prove nothing.
class OperationAtRandom : public OperationModel {};
INSTANTIATE_TEST_SUITE_P(Streams, OperationAtRandom,
                         ::testing::Values(Streams::kEarly, Streams::kLate));

TEST_P(OperationAtRandom, OneOfSeveralRanksDiesInOneOfTwoCalls)
{
    for (const int ranks : {2, 3}) {
        Report report;
        for (int store = 1; store <= kStoresOfTwoCalls; ++store) {
            report = explore_all({.ranks = ranks,
                                  .calls = 2,
                                  .streams = GetParam(),
                                  .may_break = true,
                                  .dies_at = store,
                                  .options = {.mode = Mode::kRandom, .executions = 40}});
            ASSERT_TRUE(not_refuted(report)) << ranks << " ranks, before store number " << store;
        }
        EXPECT_EQ(report.deaths, 0u) << "it makes more stores than were looked at";
    }
}

TEST_P(OperationAtRandom, TwoRanksRevokedInOneOfTwoCalls)
{
    EXPECT_TRUE(not_refuted(explore_all({.ranks = 2,
                                         .calls = 2,
                                         .streams = GetParam(),
                                         .may_break = true,
                                         .revoked = true,
                                         .options = {.mode = Mode::kRandom, .executions = 500}})));
}

class HeavyOperationModel : public OperationModel {};
INSTANTIATE_TEST_SUITE_P(Streams, HeavyOperationModel,
                         ::testing::Values(Streams::kEarly, Streams::kLate));

TEST_P(HeavyOperationModel, TwoRanksRevoked)
{
    EXPECT_TRUE(proved(
        explore_all({.ranks = 2, .streams = GetParam(), .may_break = true, .revoked = true})));
}

TEST_P(HeavyOperationModel, ThreeRanks)
{
    EXPECT_TRUE(proved(explore_all({.ranks = 3, .streams = GetParam()})));
}

} // namespace
} // namespace model
