// Calls in which ranks read each other's memory: what they say of new buffers, of buffers that
// cannot be shared and of memory that cannot be mapped, and what all do then.
#include "test/unit/engine_communicators.h"

namespace hetcoll::test {
namespace {

using Said = std::vector<Flags>;

constexpr std::size_t kCount = 10000; // more than the host sums

std::vector<int> numbers_of(int rank, std::size_t count = kCount)
{
    std::vector<int> numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = (rank + 1) * static_cast<int>(i % 1000);
    }
    return numbers;
}

hetcoll_settings by(const char *algorithm)
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = algorithm;
    settings.chunk_bytes = 4096;
    return settings;
}

// Two ranks with device memory that know their peers.
class MappedWayTest : public ::testing::Test {
protected:
    explicit MappedWayTest(const char *algorithm = "two_shot",
                           const std::function<void(std::vector<hetcoll_facts> &)> &disguise = {})
        : ranks_(2, by(algorithm), disguise)
    {
    }
    void SetUp() override { ranks_.find_peers(); }

    // A call of both ranks, in place, and what they have said in it.
    void call(Numbers<int> &first, Numbers<int> &second, int result = HETCOLL_SUCCESS,
              int collective = HETCOLL_ALLREDUCE)
    {
        ranks_.call(0, first, kCount, collective);
        ranks_.call(1, second, kCount, collective);
        ASSERT_TRUE(ranks_.run());
        EXPECT_EQ(ranks_.result(0), result);
        EXPECT_EQ(ranks_.result(1), result);
    }
    static std::vector<int> sum()
    {
        std::vector<int> sum = numbers_of(0);
        for (int &number : sum) {
            number *= 3;
        }
        return sum;
    }
    void expect_sums()
    {
        EXPECT_EQ(first_.read(), sum());
        EXPECT_EQ(second_.read(), sum());
    }
    // A call of rank 0 while rank 1 says these. Its result.
    int call_among(std::vector<Flags> script)
    {
        ranks_.call(0, first_, kCount);
        ranks_.script(1, std::move(script));
        EXPECT_TRUE(ranks_.run());
        return ranks_.result(0);
    }
    static void refill(Numbers<int> &vector, int rank)
    {
        upload(reinterpret_cast<CUdeviceptr>(vector.data()), numbers_of(rank));
    }
    [[nodiscard]] static std::size_t lines_with(const char *text)
    {
        const auto lines = take_log();
        return static_cast<std::size_t>(
            std::count_if(lines.begin(), lines.end(), [text](const std::string &line) {
                return line.find(text) != std::string::npos;
            }));
    }

    Communicators ranks_;
    Numbers<int> first_{Where::kDevice, numbers_of(0)}, second_{Where::kDevice, numbers_of(1)};
};

const Said kNewCall = {kDeviceMemory | kNewBuffers, kDeviceMemory | kNewBuffers,
                       kDeviceMemory | kNewBuffers};
const Said kKnownCall = {kDeviceMemory, kDeviceMemory};
constexpr const char *kCannotMap = "memory of another GPU cannot be mapped";

// ---- new buffers ----

TEST_F(MappedWayTest, NewBuffersAreMappedInAMeetingMoreAndAreKnownAfterwards)
{
    const auto by_two_shot = ranks_.counter(0, HETCOLL_CALLS_TWO_SHOT);
    call(first_, second_);
    EXPECT_EQ(ranks_.said(0), kNewCall);
    EXPECT_EQ(ranks_.said(1), kNewCall);
    expect_sums();
    EXPECT_EQ(ranks_.counter(0, HETCOLL_CALLS_TWO_SHOT), by_two_shot + 1);
    EXPECT_GT(ranks_.counter(0, HETCOLL_BYTES_MAPPED), 0u);

    refill(first_, 0);
    refill(second_, 1);
    call(first_, second_);
    EXPECT_EQ(ranks_.said(0), kKnownCall);
    EXPECT_EQ(ranks_.said(1), kKnownCall);
    expect_sums();
}

TEST_F(MappedWayTest, ABufferThatIsNewOnOneRankMakesAllMeetOnceMore)
{
    call(first_, second_);
    refill(first_, 0);
    const auto meetings = ranks_.counter(0, HETCOLL_AGREEMENTS);
    Numbers<int> other(Where::kDevice, numbers_of(1));
    call(first_, other);
    EXPECT_EQ(ranks_.said(1), kNewCall);
    // Rank 0 has no new one, but hears of it.
    EXPECT_EQ(ranks_.said(0),
              (Said{kDeviceMemory, kDeviceMemory | kNewBuffers, kDeviceMemory | kNewBuffers}));
    EXPECT_EQ(ranks_.counter(0, HETCOLL_AGREEMENTS), meetings + 3);
    EXPECT_EQ(first_.read(), sum());
    EXPECT_EQ(other.read(), sum());
}

// ---- another device ----

// Rank 1 in a context of its own, which counts as another device.
class MovedWayTest : public MappedWayTest {
protected:
    MovedWayTest() : context_(cuda().make_context())
    {
        const ContextScope scope(*cuda().driver, context_);
        vector_ = cuda().allocate(kCount * sizeof(int));
    }
    ~MovedWayTest() override { HETCOLL_REQUIRE(cuda().cuCtxDestroy(context_)); }

    void call_there()
    {
        refill(first_, 0);
        upload(vector_, numbers_of(1));
        const auto mapped = ranks_.counter(1, HETCOLL_BYTES_MAPPED);
        ranks_.call(0, first_, kCount);
        ranks_.call(1, pointer(vector_), pointer(vector_), kCount);
        ASSERT_TRUE(ranks_.run());
        EXPECT_EQ(ranks_.result(0), HETCOLL_SUCCESS);
        EXPECT_EQ(ranks_.result(1), HETCOLL_SUCCESS);
        EXPECT_EQ(first_.read(), sum());
        EXPECT_EQ(download<int>(vector_, kCount), sum());
        mapped_ = ranks_.counter(1, HETCOLL_BYTES_MAPPED) - mapped;
    }

    CUcontext context_;
    CUdeviceptr vector_ = 0;
    std::uint64_t mapped_ = 0; // by rank 1 in the last call
};

TEST_F(MovedWayTest, ItsPeersAreFoundAnewAndItsMemoryIsMapped)
{
    call(first_, second_);
    call_there();
    EXPECT_EQ(ranks_.said(1).front(), kDeviceMemory | kNoMapping | kNewDevice);
    EXPECT_GT(mapped_, 0u);
    call_there();
    EXPECT_EQ(ranks_.said(1), kKnownCall);
    EXPECT_GT(mapped_, 0u);
    refill(first_, 0);
    refill(second_, 1);
    call(first_, second_); // and back
    EXPECT_EQ(ranks_.said(1).front(), kDeviceMemory | kNoMapping | kNewDevice);
    expect_sums();
}

TEST_F(MovedWayTest, ARankThatMovesForEverGoesByMessagesAndSaysSoOnce)
{
    for (int moves = 0; moves < 16; moves += 2) {
        call_there();
        EXPECT_GT(mapped_, 0u);
        refill(first_, 0);
        refill(second_, 1);
        call(first_, second_);
    }
    EXPECT_EQ(lines_with("changes from call to call"), 0u);
    for (int round = 0; round < 2; ++round) {
        call_there();
        EXPECT_EQ(ranks_.said(1), Said(2, kDeviceMemory | kNoMapping));
        EXPECT_EQ(mapped_, 0u);
    }
    EXPECT_EQ(lines_with("0 hetcoll: the GPU or context of a rank's buffers changes from call to "
                         "call"),
              1u);
}

// ---- buffers that cannot be shared ----

class OneShotWayTest : public MappedWayTest {
protected:
    OneShotWayTest() : MappedWayTest("one_shot") {}
};

// In place its input is copied aside: of more bytes than what stood in for the first calls'.
TEST_F(OneShotWayTest, WithoutMemoryToShareAllGoByMessagesInThisCallOnly)
{
    const std::size_t count = 600'000;
    Numbers<int> first(Where::kDevice, numbers_of(0, count)),
        second(Where::kDevice, numbers_of(1, count));
    const auto add = [&] {
        ranks_.call(0, first, count);
        ranks_.call(1, second, count);
        ASSERT_TRUE(ranks_.run());
        EXPECT_EQ(ranks_.result(0), HETCOLL_SUCCESS);
        EXPECT_EQ(ranks_.result(1), HETCOLL_SUCCESS);
        EXPECT_EQ(first.read(), second.read());
        EXPECT_EQ(first.read()[999], 3 * 999);
    };
    const auto by_one_shot = ranks_.counter(0, HETCOLL_CALLS_ONE_SHOT);
    {
        const Faults faults("cuMemAlloc:1:2");
        add();
    }
    EXPECT_EQ(ranks_.said(0), Said(2, kDeviceMemory | kNoMapping));
    EXPECT_EQ(ranks_.said(1), Said(2, kDeviceMemory | kNewBuffers));
    EXPECT_EQ(ranks_.counter(0, HETCOLL_CALLS_ONE_SHOT), by_one_shot);
    EXPECT_EQ(lines_with("1 hetcoll: a rank cannot share its buffers: "), 1u);

    upload(reinterpret_cast<CUdeviceptr>(first.data()), numbers_of(0, count));
    upload(reinterpret_cast<CUdeviceptr>(second.data()), numbers_of(1, count));
    add();
    EXPECT_EQ(ranks_.said(0), kNewCall);
    EXPECT_EQ(ranks_.counter(0, HETCOLL_CALLS_ONE_SHOT), by_one_shot + 1);
}

// Memory of a pool, which no other process may map. One rank's; the other's are ordinary.
class PoolWayTest : public MappedWayTest, public ::testing::WithParamInterface<const char *> {
protected:
    PoolWayTest() : MappedWayTest(GetParam()) {}

    static CUdeviceptr of_pool(const std::vector<int> &values)
    {
        CUdeviceptr memory = 0;
        HETCOLL_REQUIRE(
            cuda().cuMemAllocAsync(&memory, values.size() * sizeof(int), CU_STREAM_LEGACY));
        HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(CU_STREAM_LEGACY));
        upload(memory, values);
        return memory;
    }
    static void free(CUdeviceptr memory)
    {
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        HETCOLL_REQUIRE(cuda().cuMemFreeAsync(memory, CU_STREAM_LEGACY));
    }
    void run(const void *send, void *recv)
    {
        ranks_.call(0, first_, kCount);
        ranks_.call(1, send, recv, kCount);
        ASSERT_TRUE(ranks_.run());
        EXPECT_EQ(ranks_.result(0), HETCOLL_SUCCESS);
        EXPECT_EQ(ranks_.result(1), HETCOLL_SUCCESS);
        EXPECT_EQ(ranks_.said(1), kNewCall); // memory of ours is announced in its place
        EXPECT_GT(ranks_.counter(0, HETCOLL_BYTES_MAPPED), 0u);
        EXPECT_EQ(first_.read(), sum());
    }
};
INSTANTIATE_TEST_SUITE_P(Algorithms, PoolWayTest, ::testing::Values("ring", "two_shot"),
                         [](const auto &param) { return std::string(param.param); });

TEST_P(PoolWayTest, ABufferThatNobodyMayMapIsCopiedToOneThatTheyMay)
{
    const CUdeviceptr vector = of_pool(numbers_of(1));
    run(pointer(vector), pointer(vector));
    EXPECT_EQ(download<int>(vector, kCount), sum());
    free(vector);
}

TEST_P(PoolWayTest, AnInputThatNobodyMayMapStaysAsItIs)
{
    const CUdeviceptr input = of_pool(numbers_of(1));
    run(pointer(input), second_.data());
    EXPECT_EQ(second_.read(), sum());
    EXPECT_EQ(download<int>(input, kCount), numbers_of(1));
    free(input);
}

TEST_P(PoolWayTest, AResultThatNobodyMayMapIsCopiedThere)
{
    const CUdeviceptr result = of_pool(std::vector<int>(kCount));
    run(second_.data(), pointer(result));
    EXPECT_EQ(download<int>(result, kCount), sum());
    EXPECT_EQ(second_.read(), numbers_of(1));
    free(result);
}

// ---- what another rank says in the opening ----

TEST_F(MappedWayTest, AnErrorOfAPeerEndsTheCallWithNothingMapped)
{
    call(first_, second_);
    refill(first_, 0);
    const std::pair<Flags, int> results[] = {{kOutOfRange, HETCOLL_ERROR_RANGE},
                                             {kFailed, HETCOLL_ERROR_DEVICE}};
    for (const auto &[flags, result] : results) {
        EXPECT_EQ(call_among({kDeviceMemory | kNewBuffers | flags}), result) << flags;
        EXPECT_EQ(ranks_.said(0), Said{kDeviceMemory}) << flags;
        EXPECT_EQ(first_.read(), numbers_of(0)) << flags;
    }
    EXPECT_FALSE(ranks_.comm(0).planner().peers().known()); // a driver has failed
}

TEST_F(MappedWayTest, APeerThatMustStageMakesAllStage)
{
    call(first_, second_);
    refill(first_, 0);
    ranks_.previous(0).output = sum();
    EXPECT_EQ(call_among({kDeviceMemory | kMustStage, kDeviceMemory | kMustStage}),
              HETCOLL_SUCCESS);
    EXPECT_EQ(ranks_.said(0), kKnownCall);
    EXPECT_EQ(ranks_.previous(0).input, numbers_of(0));
    EXPECT_EQ(first_.read(), sum());
}

// ---- what another rank says in the meeting for mapping ----

TEST_F(MappedWayTest, AFailureThatIsSaidThereIsTheResultAfterTheClosing)
{
    call(first_, second_);
    EXPECT_EQ(call_among({kDeviceMemory | kNewBuffers, kDeviceMemory | kNewBuffers | kFailed,
                          kDeviceMemory | kNewBuffers | kFailed}),
              HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(ranks_.said(0).size(), 3u);
}

TEST_F(MappedWayTest, InTheClosingOnlyAFailureCounts)
{
    call(first_, second_);
    for (const Flags flags : {kMustStage, kNoMapping, kNewBuffers, kUnknownOp, kOutOfRange}) {
        EXPECT_EQ(call_among({kDeviceMemory, kDeviceMemory | flags}), HETCOLL_SUCCESS) << flags;
    }
    EXPECT_EQ(call_among({kDeviceMemory, kDeviceMemory | kFailed}), HETCOLL_ERROR_DEVICE);
    EXPECT_FALSE(ranks_.comm(0).planner().peers().known());
}

// ---- memory that cannot be mapped ----

class UnmappableTest : public MappedWayTest {
protected:
    // Rank 0 takes rank 1 for a process that is gone, though the trials went well.
    explicit UnmappableTest()
        : MappedWayTest("ring",
                        [](std::vector<hetcoll_facts> &facts) { ++facts[1].identity.start_time; })
    {
    }
    void SetUp() override
    {
        MappedWayTest::SetUp();
        for (int rank = 0; rank < 2; ++rank) {
            ranks_.comm(rank).group().own_slot().reach = 3;
        }
        ASSERT_TRUE(ranks_.comm(0).planner().peers().found().maps);
    }
};

TEST_F(UnmappableTest, ARankSaysSoAndItsPeerAnnouncesOtherMemory)
{
    call(first_, second_);
    EXPECT_EQ(ranks_.said(0),
              (Said{kDeviceMemory | kNewBuffers, kDeviceMemory | kNewBuffers | kNoMapping,
                    kDeviceMemory | kNewBuffers | kNoMapping}));
    EXPECT_EQ(ranks_.said(1), kNewCall);
    expect_sums();
    EXPECT_EQ(lines_with("0 hetcoll: a buffer of rank 1, in 40000 bytes of device memory at 0x"),
              1u); // of the rank that could not
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_TRUE(ranks_.comm(rank).planner().peers().found().maps);
        EXPECT_EQ(ranks_.counter(rank, HETCOLL_BYTES_MAPPED), 0u);
    }
    EXPECT_FALSE(ranks_.comm(0).group().own_slot().input.stands_in);
    EXPECT_FALSE(ranks_.comm(1).group().own_slot().input.stands_in);

    refill(first_, 0);
    refill(second_, 1);
    call(first_, second_);
    EXPECT_FALSE(ranks_.comm(0).group().own_slot().input.stands_in);
    EXPECT_TRUE(ranks_.comm(1).group().own_slot().input.stands_in);
    expect_sums();
}

TEST_F(UnmappableTest, WhereThatCannotBeMappedEitherNobodyMapsAgain)
{
    const Said never = {kDeviceMemory | kNewBuffers,
                        kDeviceMemory | kNewBuffers | kNoMapping | kNeverMap,
                        kDeviceMemory | kNewBuffers | kNoMapping | kNeverMap};
    call(first_, second_);
    refill(first_, 0);
    refill(second_, 1);
    EXPECT_EQ(lines_with(kCannotMap), 0u);
    call(first_, second_);
    EXPECT_EQ(ranks_.said(0), never);
    EXPECT_EQ(ranks_.said(1), kNewCall);
    expect_sums();
    EXPECT_EQ(lines_with(kCannotMap), 1u);
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_FALSE(ranks_.comm(rank).planner().peers().found().maps);
        EXPECT_EQ(ranks_.counter(rank, HETCOLL_BYTES_MAPPED), 0u);
    }

    refill(first_, 0);
    refill(second_, 1);
    call(first_, second_);
    EXPECT_EQ(ranks_.said(0), kKnownCall);
    EXPECT_EQ(ranks_.said(1), kKnownCall);
    expect_sums();
    EXPECT_EQ(take_log(), std::vector<std::string>{});
}

TEST_F(UnmappableTest, AnotherBufferThatCannotBeMappedIsNamedAtALowerLevel)
{
    Numbers<int> third(Where::kDevice, numbers_of(1));
    call(first_, second_);
    refill(first_, 0);
    EXPECT_EQ(lines_with("0 hetcoll: a buffer of rank 1"), 1u);
    call(first_, third);
    EXPECT_EQ(lines_with("1 hetcoll: a buffer of rank 1"), 1u);
    EXPECT_EQ(first_.read(), sum());
    EXPECT_TRUE(ranks_.comm(0).planner().peers().found().maps);
}

TEST_F(UnmappableTest, ACollectiveGoesByMessagesThen)
{
    call(first_, second_, HETCOLL_SUCCESS, HETCOLL_BCAST);
    EXPECT_EQ(ranks_.said(0).size(), 3u);
    EXPECT_EQ(ranks_.said(0)[1], kDeviceMemory | kNewBuffers | kNoMapping);
    EXPECT_EQ(second_.read(), numbers_of(0));
    EXPECT_EQ(ranks_.counter(0, HETCOLL_BYTES_MAPPED), 0u);
    EXPECT_EQ(ranks_.counter(0, HETCOLL_BYTES_BOUNCE), kCount * sizeof(int));
}

// It is too late to go another way: nobody waits for the mapping of known buffers.
TEST_F(UnmappableTest, ARankThatCannotMapAKnownBufferFailsInTheClosing)
{
    Process &process = ranks_.process(0);
    const PointerInfo info = *process.gpus().pointers().find(first_.data());
    auto bounce = process.gpus().pool().borrow_device(info, Sends::kBounced);
    ASSERT_TRUE(bounce.ok());
    MappedCall &mapped = ranks_.comm(0).planner().mapped();
    ASSERT_TRUE(mapped
                    .plan(Algorithm::kRing,
                          {.send = first_.data(),
                           .recv = first_.data(),
                           .send_info = info,
                           .recv_info = info,
                           .foreign = false,
                           .bytes = kCount * sizeof(int)},
                          **bounce)
                    .ok());
    mapped.remember(); // as if a call had gone well
    mapped.release();
    process.gpus().pool().give_back(std::move(*bounce));
    for (auto &word : ranks_.comm(1).group().own_slot().progress) {
        word = kCount / 2 * sizeof(int); // rank 1 has done all of every step
    }
    EXPECT_EQ(call_among(kKnownCall), HETCOLL_ERROR_DEVICE);
    EXPECT_EQ(ranks_.said(0), (Said{kDeviceMemory, kDeviceMemory | kFailed}));
}

TEST_F(MappedWayTest, WhereAPeerCannotMapThisRankGivesItsOwnMappingsUp)
{
    call(first_, second_);
    take_log();
    ranks_.call(0, first_, kCount);
    ranks_.script(
        1, {kDeviceMemory | kNewBuffers, kDeviceMemory | kNewBuffers | kNoMapping | kNeverMap});
    EXPECT_TRUE(ranks_.step_until({0, 1}, [this] { return ranks_.is_over(1); }));
    ranks_.step(std::vector{0}); // hears it
    EXPECT_FALSE(ranks_.comm(0).planner().peers().found().maps);
    EXPECT_FALSE(ranks_.is_over(0)); // waits for the messages of rank 1
    EXPECT_EQ(ranks_.said(0), (Said{kDeviceMemory, kDeviceMemory | kNewBuffers}));
    EXPECT_EQ(lines_with(kCannotMap), 0u); // that rank speaks
    EXPECT_EQ(lines_with("cannot run on a communicator"), 0u);
}

// ---- prices ----

TEST(PricesTest, PricesAreFoundByTheFirstLargerCallAndByNothingBefore)
{
    Communicators comms(2, by("auto"));
    const auto have_prices = [&] {
        return comms.comm(0).planner().peers().found().prices != nullptr;
    };
    EXPECT_FALSE(have_prices()) << "when a communicator is made";
    for (const auto &[count, priced] : {std::pair(4, false), std::pair(100'000, true)}) {
        std::deque<Numbers<int>> vectors;
        for (int rank = 0; rank < comms.size(); ++rank) {
            comms.call(rank, vectors.emplace_back(Where::kDevice, std::vector<int>(count)),
                       static_cast<std::size_t>(count));
        }
        ASSERT_TRUE(comms.run());
        EXPECT_EQ(comms.result(0), HETCOLL_SUCCESS);
        EXPECT_EQ(have_prices(), priced) << count;
    }
}

} // namespace
} // namespace hetcoll::test
