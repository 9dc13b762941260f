// Sums of 8-bit floats: kept in float and rounded once, whatever way a call takes.
#include "cuda_kernels/numbers.h"
#include "test/unit/engine_streams.h"

namespace hetcoll::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kFew = 100, kMany = 20000; // below and above the small limit
constexpr int kRanks = 4;

// 16 + 1 + 1 - 16 is 2. Rounded after every addition in the order of the ranks it is 0, and in
// pairs 1.
constexpr float kOfRank[kRanks] = {16, 1, 1, -16};

std::uint8_t code_of(float number)
{
    Float8E4m3 code;
    narrow(number, code);
    return code.bits;
}

hetcoll_settings by(const char *algorithm)
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = algorithm;
    return settings;
}

class Float8CallTest : public ::testing::Test {
protected:
    // Where each rank's vector is.
    using Places = std::array<Where, kRanks>;
    static constexpr Places kDevices = {Where::kDevice, Where::kDevice, Where::kDevice,
                                        Where::kDevice};
    static constexpr Places kHosts = {Where::kHost, Where::kHost, Where::kHost, Where::kHost};
    static constexpr Places kMixed = {Where::kHost, Where::kDevice, Where::kHost, Where::kDevice};

    // One in-place sum, and that all ranks succeed with 2 everywhere. What `served` counted of it.
    static std::uint64_t sum(Communicators &ranks, const Places &places, std::size_t count,
                             hetcoll_counter served)
    {
        const std::uint64_t before = ranks.counter(1, served);
        std::deque<Numbers<std::uint8_t>> vectors;
        start(ranks, vectors, places, count);
        EXPECT_TRUE(ranks.run());
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_EQ(ranks.result(rank), HETCOLL_SUCCESS) << rank;
            EXPECT_EQ(vectors[rank].read(), Bytes(count, code_of(2))) << rank;
        }
        return ranks.counter(1, served) - before;
    }
    static void start(Communicators &ranks, std::deque<Numbers<std::uint8_t>> &vectors,
                      const Places &places, std::size_t count)
    {
        for (int rank = 0; rank < kRanks; ++rank) {
            vectors.emplace_back(places[rank], Bytes(count, code_of(kOfRank[rank])));
            call(ranks, rank, vectors[rank], count);
        }
    }
    static void call(Communicators &ranks, int rank, Numbers<std::uint8_t> &vector,
                     std::size_t count)
    {
        ranks.call(rank, vector.data(), vector.data(), count);
        hetcoll_call &made = ranks.made(rank);
        made.kind = HETCOLL_FLOAT8_E4M3;
        made.span = count;
        made.user_op = 1;
    }
};

TEST_F(Float8CallTest, SmallVectorsAreAddedByTheProcessors)
{
    Communicators ranks(kRanks, by("host"));
    ranks.find_peers();
    for (const Places &places : {kDevices, kHosts, kMixed}) {
        EXPECT_EQ(sum(ranks, places, kFew, HETCOLL_CALLS_HOST), 1u);
    }
}

TEST_F(Float8CallTest, KernelsThatReadAllInputsTakeThemAsTheyAre)
{
    const std::pair<const char *, hetcoll_counter> kernels[] = {
        {"one_shot", HETCOLL_CALLS_ONE_SHOT},
        {"two_shot", HETCOLL_CALLS_TWO_SHOT},
        {"leader", HETCOLL_CALLS_LEADER}};
    for (const auto &[algorithm, served] : kernels) {
        Communicators ranks(kRanks, by(algorithm));
        ranks.find_peers();
        EXPECT_EQ(sum(ranks, kDevices, kMany, served), 1u) << algorithm;
    }
}

TEST_F(Float8CallTest, SuchAKernelIsChosenWhereItCanRun)
{
    Communicators ranks(kRanks, default_settings());
    ranks.find_peers();
    const auto by_kernels = [&] {
        return ranks.counter(1, HETCOLL_CALLS_ONE_SHOT) + ranks.counter(1, HETCOLL_CALLS_TWO_SHOT) +
               ranks.counter(1, HETCOLL_CALLS_LEADER);
    };
    const std::uint64_t before = by_kernels();
    sum(ranks, kDevices, kMany, HETCOLL_CALLS_FAILED);
    EXPECT_EQ(by_kernels(), before + 1);
}

TEST_F(Float8CallTest, OtherAlgorithmsSumTheirFloats)
{
    const std::pair<const char *, hetcoll_counter> others[] = {
        {"ring", HETCOLL_CALLS_RING}, {"recursive_doubling", HETCOLL_CALLS_RECURSIVE_DOUBLING}};
    for (const auto &[algorithm, served] : others) {
        Communicators ranks(kRanks, by(algorithm));
        ranks.find_peers();
        EXPECT_EQ(sum(ranks, kDevices, kMany, served), 1u) << algorithm;
        EXPECT_EQ(sum(ranks, kMixed, kMany, served), 1u) << algorithm;
    }
}

TEST_F(Float8CallTest, LargeVectorsInHostMemoryAreSummedAsFloatsToo)
{
    Communicators ranks(kRanks, default_settings());
    ranks.find_peers();
    EXPECT_EQ(sum(ranks, kHosts, kMany, HETCOLL_CALLS_PREVIOUS), 0u);
}

TEST_F(Float8CallTest, NoSettingRoundsOnTheWay)
{
    for (const bool reproducible : {false, true}) {
        hetcoll_settings settings = default_settings();
        settings.reproducible = reproducible;
        settings.accumulate = HETCOLL_ACCUMULATE_ELEMENT;
        Communicators ranks(kRanks, settings);
        ranks.find_peers();
        for (const std::size_t count : {kFew, kMany}) {
            for (const Places &places : {kDevices, kHosts, kMixed}) {
                sum(ranks, places, count, HETCOLL_CALLS_FAILED);
            }
        }
    }
}

TEST_F(Float8CallTest, WithoutKernelsTheHostMakesTheFloats)
{
    Communicators ranks(kRanks, default_settings());
    const Faults faults("cuModuleLoadData:*:209,cuModuleLoadDataEx:*:209");
    for (const Places &places : {kDevices, kMixed}) {
        sum(ranks, places, kMany, HETCOLL_CALLS_FAILED);
    }
    take_log();
}

// The driver waits for the device wherever it may, so a queued call that made something would never
// end. By a kernel; by messages, whose floats are on the host; larger than its stream was attached
// for.
TEST_F(Float8CallTest, QueuedCallsAreRoundedOnceToo)
{
    const std::pair<const char *, std::size_t> ways[] = {
        {"auto", kMany}, {"ring", kMany}, {"two_shot", kFew}};
    for (const auto &[algorithm, most_bytes] : ways) {
        Communicators ranks(kRanks, by(algorithm));
        AttachedStreams streams(ranks, most_bytes);
        for (const std::size_t count : {kFew, kMany}) {
            std::deque<Numbers<std::uint8_t>> vectors;
            start(ranks, vectors, kDevices, count);
            streams.enqueue();
            ASSERT_TRUE(streams.run()) << algorithm;
            for (int rank = 0; rank < kRanks; ++rank) {
                HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(streams.stream(rank)));
                EXPECT_EQ(streams.calls(rank).take_error(), HETCOLL_SUCCESS) << algorithm;
                EXPECT_EQ(vectors[rank].read(), Bytes(count, code_of(2))) << algorithm;
            }
            sum(ranks, kDevices, count, HETCOLL_CALLS_FAILED); // not queued
        }
    }
    take_log();
}

TEST_F(Float8CallTest, LongVectorsAreMadeFloatsPieceByPiece)
{
    constexpr std::size_t kThreePieces = (std::size_t{2} << 24) + 17;
    Communicators ranks(2, by("ring"));
    ranks.find_peers();
    std::deque<Numbers<std::uint8_t>> vectors;
    Bytes numbers(kThreePieces), sums(kThreePieces);
    for (std::size_t i = 0; i < kThreePieces; ++i) {
        numbers[i] = code_of(static_cast<float>(i / 1000 % 8));
        sums[i] = code_of(static_cast<float>(i / 1000 % 8 * 2));
    }
    for (int rank = 0; rank < 2; ++rank) {
        vectors.emplace_back(Where::kDevice, numbers);
        call(ranks, rank, vectors[rank], kThreePieces);
    }
    ASSERT_TRUE(ranks.run());
    for (int rank = 0; rank < 2; ++rank) {
        EXPECT_EQ(ranks.result(rank), HETCOLL_SUCCESS);
        EXPECT_TRUE(vectors[rank].read() == sums);
    }
}

TEST_F(Float8CallTest, AllRanksFailIfOneCannotLaunchItsConversion)
{
    Communicators ranks(kRanks, by("ring"));
    ranks.find_peers();
    sum(ranks, kDevices, kMany, HETCOLL_CALLS_RING);
    std::deque<Numbers<std::uint8_t>> vectors;
    start(ranks, vectors, kDevices, kMany);
    {
        const Faults faults("cuLaunchKernel:1:1");
        EXPECT_TRUE(ranks.run());
    }
    for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(ranks.result(rank), HETCOLL_ERROR_DEVICE) << rank;
    }
    take_log();
}

} // namespace
} // namespace hetcoll::test
