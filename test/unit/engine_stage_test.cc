// Host copies of device buffers, through the boundary that the component uses.
#include "engine/hetcoll.h"
#include "test/unit/device_cuda.h"
#include "test/unit/failing_allocations.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;
using test::Faults;
using test::HeldDevices;
using Bytes = std::vector<unsigned char>;

constexpr std::size_t kBytes = 4096;

struct Destroy {
    void operator()(hetcoll_process *process) const { hetcoll_process_destroy(process); }
    void operator()(hetcoll_stage *stage) const { hetcoll_stage_destroy(stage); }
};

class StageTest : public ::testing::Test {
protected:
    explicit StageTest(std::size_t pinned = 1 << 20, std::size_t bytes = kBytes) : content_(bytes)
    {
        hetcoll_settings settings = hetcoll_default_settings();
        settings.tuning_table = "none";
        settings.max_memory = 0;
        settings.stage_pinned = pinned;
        std::array<char, 256> problem{};
        process_.reset(hetcoll_process_create(&settings, problem.data(), problem.size()));
        EXPECT_NE(process_, nullptr) << problem.data();
    }
    void SetUp() override
    {
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        memory_ = cuda().allocate(content_.size());
        for (std::size_t i = 0; i < content_.size(); ++i) {
            content_[i] = static_cast<unsigned char>(i * 2654435761u >> 13);
        }
        write(content_);
    }
    void TearDown() override
    {
        stage_.reset();
        process_.reset();
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        HETCOLL_REQUIRE(cuda().driver->cuMemFree(memory_));
    }

    [[nodiscard]] void *buffer() const { return reinterpret_cast<void *>(memory_); }
    void write(const Bytes &bytes) const
    {
        HETCOLL_REQUIRE(cuda().driver->cuMemcpy(
            memory_, reinterpret_cast<CUdeviceptr>(bytes.data()), bytes.size()));
    }
    [[nodiscard]] Bytes content() const
    {
        Bytes bytes(content_.size());
        HETCOLL_REQUIRE(cuda().driver->cuMemcpy(reinterpret_cast<CUdeviceptr>(bytes.data()),
                                                memory_, bytes.size()));
        return bytes;
    }
    [[nodiscard]] std::uint64_t counter(hetcoll_counter which) const
    {
        return hetcoll_process_counter(process_.get(), which);
    }

    // The answer of hetcoll_stage_add().
    int add(void *address, bool leave_ordinary = false)
    {
        hetcoll_stage *stage = stage_.release();
        const int added =
            hetcoll_stage_add(process_.get(), &stage, address, address, leave_ordinary ? 1 : 0);
        stage_.reset(stage);
        return added;
    }
    void piece(std::ptrdiff_t offset, std::size_t bytes, int use)
    {
        run({offset, bytes, 0, 1}, use);
    }
    void run(const hetcoll_run &run, int use) { hetcoll_stage_run(stage_.get(), &run, use); }
    unsigned char *host() { return static_cast<unsigned char *>(hetcoll_stage_host(stage_.get())); }
    void copy(int use)
    {
        hetcoll_stage_start(stage_.get(), use);
        while (hetcoll_stage_is_done(stage_.get()) == 0) {
            std::this_thread::yield();
        }
    }
    // One copy from the device, for which the process makes its stream and memory.
    void stage_once()
    {
        ASSERT_EQ(add(buffer()), 1);
        piece(0, kBytes, HETCOLL_STAGE_READ);
        ASSERT_NE(host(), nullptr);
        copy(HETCOLL_STAGE_READ);
        stage_.reset();
    }
    int finish() { return hetcoll_stage_finish(stage_.get(), "bcast"); }
    // A copy from the device for each allocation that there can be no memory for from there on.
    void copy_without_memory()
    {
        bool more = true;
        for (long nth = 1; more && !HasFailure(); ++nth) {
            SCOPED_TRACE("allocation " + std::to_string(nth));
            ASSERT_EQ(add(buffer()), 1);
            piece(0, content_.size(), HETCOLL_STAGE_READ);
            const unsigned char *memory = host();
            ASSERT_NE(memory, nullptr);
            int result = HETCOLL_SUCCESS;
            {
                test::FailingAllocations shortage(nth);
                shortage.turn(true);
                copy(HETCOLL_STAGE_READ);
                result = finish();
                shortage.turn(false);
                more = shortage.have_failed();
            }
            EXPECT_EQ(has_input(), result == HETCOLL_SUCCESS);
            if (has_input()) {
                EXPECT_EQ(Bytes(memory, memory + content_.size()), content_);
            } else {
                EXPECT_EQ(result, HETCOLL_ERROR_NO_MEMORY);
            }
            {
                test::FailingAllocations shortage(1);
                shortage.turn(true);
                stage_.reset();
            }
        }
        stage_once();
    }
    bool has_input() const { return hetcoll_stage_has_input(stage_.get()) != 0; }
    // Bytes between the rows change on the host and on the device: neither reaches the other.
    void check_rows(const hetcoll_run &rows)
    {
        write(content_);
        ASSERT_EQ(add(buffer()), 1);
        run(rows, HETCOLL_STAGE_READ | HETCOLL_STAGE_WRITTEN);
        unsigned char *memory = host();
        copy(HETCOLL_STAGE_READ);
        Bytes expected(content_.size(), 3);
        write(expected);
        for (std::size_t row = 0; row < rows.count; ++row) {
            const std::size_t at = static_cast<std::size_t>(rows.offset) + row * rows.stride;
            EXPECT_EQ(std::memcmp(memory + at, content_.data() + at, rows.bytes), 0);
            std::memset(memory + at, 1, row + 1 < rows.count ? rows.stride : rows.bytes);
            std::memset(expected.data() + at, 1, rows.bytes);
        }
        copy(HETCOLL_STAGE_WRITTEN);
        EXPECT_EQ(finish(), HETCOLL_SUCCESS);
        EXPECT_EQ(content(), expected);
    }

    std::unique_ptr<hetcoll_process, Destroy> process_;
    std::unique_ptr<hetcoll_stage, Destroy> stage_;
    CUdeviceptr memory_ = 0;
    Bytes content_;
};

class StageWithoutPinnedMemoryTest : public StageTest {
protected:
    StageWithoutPinnedMemoryTest() : StageTest(0) {}
};

TEST_F(StageTest, HostMemoryIsLeftAloneAndTheDriverIsNotAskedForTheStack)
{
    int local = 0;
    const auto asked = counter(HETCOLL_POINTER_QUERIES);
    EXPECT_EQ(add(&local), 0);
    EXPECT_EQ(counter(HETCOLL_POINTER_QUERIES), asked);
    Bytes large(1 << 20); // a mapping of its own
    EXPECT_EQ(add(large.data()), 0);
    EXPECT_EQ(stage_, nullptr);
}

TEST_F(StageTest, CopiesInWhatIsReadAndOutWhatIsWritten)
{
    ASSERT_EQ(add(buffer()), 1);
    piece(100, 50, HETCOLL_STAGE_READ);
    piece(300, 7, HETCOLL_STAGE_WRITTEN);
    unsigned char *memory = host();
    ASSERT_NE(memory, nullptr);
    copy(HETCOLL_STAGE_READ);
    EXPECT_EQ(std::memcmp(memory + 100, content_.data() + 100, 50), 0);
    std::memset(memory + 100, 0xee, 207);
    copy(HETCOLL_STAGE_WRITTEN);
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    std::fill_n(content_.begin() + 300, 7, static_cast<unsigned char>(0xee));
    EXPECT_EQ(content(), content_);
    EXPECT_EQ(counter(HETCOLL_BYTES_STAGED), 57u);
    EXPECT_EQ(counter(HETCOLL_STAGED_COLLECTIVE), 1u);
}

TEST_F(StageTest, BetweenTheRowsOfARunNothingIsCopied) { check_rows({8, 12, 16, 255}); }

TEST_F(StageWithoutPinnedMemoryTest, BetweenTheRowsOfARunNothingIsCopied)
{
    check_rows({8, 12, 16, 255});
}

TEST_F(StageTest, ADriverWithoutTwoDimensionalCopiesCopiesRowByRow)
{
    const Faults faults("cuMemcpy2DAsync:*:1");
    check_rows({8, 12, 16, 255});
}

TEST_F(StageTest, PiecesMayOverlapAndComeInAnyOrder)
{
    ASSERT_EQ(add(buffer()), 1);
    for (const std::ptrdiff_t offset : {500, 100, 300, 150, 520}) {
        piece(offset, 100, HETCOLL_STAGE_READ | HETCOLL_STAGE_WRITTEN);
    }
    unsigned char *memory = host();
    copy(HETCOLL_STAGE_READ);
    for (const int first : {100, 300, 500}) {
        EXPECT_EQ(std::memcmp(memory + first, content_.data() + first, 100), 0);
    }
    EXPECT_EQ(counter(HETCOLL_BYTES_STAGED), 150u + 100u + 120u);
    copy(HETCOLL_STAGE_WRITTEN);
    EXPECT_EQ(content(), content_);
}

TEST_F(StageTest, HostMemoryIsAlignedAsTheBufferIs)
{
    unsigned char *first = static_cast<unsigned char *>(buffer()) + 40;
    ASSERT_EQ(add(first), 1);
    piece(8, 16, HETCOLL_STAGE_READ);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host()) % 256,
              reinterpret_cast<std::uintptr_t>(first) % 256);
}

TEST_F(StageTest, CopiesWaitForTheLegacyStreamAndTheCallerDoesNot)
{
    stage_once(); // a stream that is made may wait for the device
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kBytes, HETCOLL_STAGE_READ);
    const unsigned char *memory = host();
    HeldDevices held;
    HETCOLL_REQUIRE(cuda().cuMemsetD8Async(memory_, 7, kBytes, CU_STREAM_LEGACY));
    hetcoll_stage_start(stage_.get(), HETCOLL_STAGE_READ);
    EXPECT_EQ(hetcoll_stage_is_done(stage_.get()), 0);
    held.release();
    while (hetcoll_stage_is_done(stage_.get()) == 0) {
        std::this_thread::yield();
    }
    EXPECT_EQ(Bytes(memory, memory + kBytes), Bytes(kBytes, 7));
}

TEST_F(StageTest, EachVisitOfTheContextAsksManyTimes)
{
    constexpr int kVisits = 10, kAsked = 8;
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kBytes, HETCOLL_STAGE_READ);
    ASSERT_NE(host(), nullptr);
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(nullptr));
    HeldDevices held;
    hetcoll_stage_start(stage_.get(), HETCOLL_STAGE_READ);
    const CallCount visits("cuCtxPushCurrent"), questions("cuEventQuery");
    for (int visit = 0; visit < kVisits; ++visit) {
        ASSERT_EQ(hetcoll_stage_is_done(stage_.get()), 0);
        CUcontext current = cuda().context;
        HETCOLL_REQUIRE(cuda().driver->cuCtxGetCurrent(&current));
        EXPECT_EQ(current, nullptr);
    }
    EXPECT_EQ(visits.get(), kVisits);
    EXPECT_EQ(questions.get(), kVisits * kAsked);
    held.release();
    while (hetcoll_stage_is_done(stage_.get()) == 0) {
        std::this_thread::yield();
    }
}

TEST_F(StageTest, MemoryAndStreamsAreUsedAgain)
{
    stage_once();
    const auto allocations = counter(HETCOLL_ALLOCATIONS);
    const auto streams = cuda().emulated_gpu_calls("cuStreamCreateWithPriority");
    const auto waits = cuda().emulated_gpu_calls("cuStreamSynchronize");
    stage_once();
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), allocations);
    EXPECT_EQ(cuda().emulated_gpu_calls("cuStreamCreateWithPriority"), streams);
    EXPECT_EQ(cuda().emulated_gpu_calls("cuStreamSynchronize"), waits);
}

TEST_F(StageTest, OrdinaryMemoryIsLeftWhereOpenMpiTakesIt)
{
    EXPECT_EQ(add(buffer(), true), 0);
    CUdeviceptr managed = 0;
    HETCOLL_REQUIRE(cuda().driver->cuMemAllocManaged(&managed, kBytes, CU_MEM_ATTACH_GLOBAL));
    EXPECT_EQ(add(reinterpret_cast<void *>(managed), true), 1);
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(managed));
}

TEST_F(StageTest, TheCallersContextIsRestored)
{
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(nullptr));
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kBytes, HETCOLL_STAGE_READ);
    ASSERT_NE(host(), nullptr);
    copy(HETCOLL_STAGE_READ);
    CUcontext current = cuda().context;
    HETCOLL_REQUIRE(cuda().driver->cuCtxGetCurrent(&current));
    EXPECT_EQ(current, nullptr);
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
}

TEST_F(StageTest, ThreadsStageAtOnce)
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([this, t] {
            for (int round = 0; round < 50; ++round) {
                hetcoll_stage *stage = nullptr;
                ASSERT_EQ(hetcoll_stage_add(process_.get(), &stage, buffer(), buffer(), 0), 1);
                const std::size_t bytes = kBytes / static_cast<std::size_t>(t + 1);
                const hetcoll_run run{0, bytes, 0, 1};
                hetcoll_stage_run(stage, &run, HETCOLL_STAGE_READ);
                const auto *memory = static_cast<unsigned char *>(hetcoll_stage_host(stage));
                hetcoll_stage_start(stage, HETCOLL_STAGE_READ);
                while (hetcoll_stage_is_done(stage) == 0) {
                    std::this_thread::yield();
                }
                EXPECT_EQ(std::memcmp(memory, content_.data(), bytes), 0);
                EXPECT_EQ(hetcoll_stage_finish(stage, "bcast"), HETCOLL_SUCCESS);
                hetcoll_stage_destroy(stage);
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

TEST_F(StageTest, AFailureIsToldOnceAndTheStageWorksAgain)
{
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kBytes, HETCOLL_STAGE_READ);
    const unsigned char *memory = host();
    {
        const Faults faults("cuMemcpyAsync:*:999,cuMemcpy:*:999");
        copy(HETCOLL_STAGE_READ);
    }
    EXPECT_FALSE(has_input());
    EXPECT_EQ(finish(), HETCOLL_ERROR_DEVICE);
    copy(HETCOLL_STAGE_READ);
    EXPECT_TRUE(has_input());
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    EXPECT_EQ(Bytes(memory, memory + kBytes), content_);
}

TEST_F(StageTest, WithoutStreamsCopiesBlock)
{
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kBytes, HETCOLL_STAGE_READ);
    const unsigned char *memory = host();
    const Faults faults("cuStreamCreateWithPriority:*:999");
    copy(HETCOLL_STAGE_READ);
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    EXPECT_EQ(Bytes(memory, memory + kBytes), content_);
}

TEST_F(StageTest, APointerThatCannotBeAskedAboutIsCopiedAllTheSame)
{
    {
        const Faults faults("cuPointerGetAttributes:*:999,cuPointerGetAttribute:*:999");
        ASSERT_EQ(add(buffer()), 1);
    }
    piece(0, kBytes, HETCOLL_STAGE_READ | HETCOLL_STAGE_WRITTEN);
    unsigned char *const memory = host();
    ASSERT_NE(memory, nullptr);
    for (int start = 0; start < 2; ++start) { // of a persistent call
        std::memset(memory, 0, kBytes);
        copy(HETCOLL_STAGE_READ);
        EXPECT_TRUE(has_input());
        EXPECT_EQ(Bytes(memory, memory + kBytes), content_);
        EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    }
    std::memset(memory, 1, kBytes);
    copy(HETCOLL_STAGE_WRITTEN);
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    EXPECT_EQ(content(), Bytes(kBytes, 1));
    const Faults faults("cuMemcpy:*:999");
    copy(HETCOLL_STAGE_READ);
    EXPECT_FALSE(has_input());
    EXPECT_EQ(finish(), HETCOLL_ERROR_DEVICE);
}

// Each driver call alone, once or for good: there is another way to copy in.
TEST_F(StageTest, NoCallThatFailsAloneLosesTheInput)
{
    for (const char *name :
         {"cuMemcpyAsync", "cuMemcpy", "cuEventRecord", "cuEventQuery", "cuCtxPushCurrent",
          "cuStreamSynchronize", "cuEventCreate", "cuStreamCreateWithPriority"}) {
        for (const char *when : {":1:999", ":*:999"}) {
            ASSERT_EQ(add(buffer()), 1);
            piece(0, kBytes, HETCOLL_STAGE_READ);
            const unsigned char *const memory = host();
            {
                const Faults faults((std::string(name) + when).c_str());
                copy(HETCOLL_STAGE_READ);
            }
            EXPECT_TRUE(has_input()) << name << when;
            EXPECT_EQ(finish(), HETCOLL_SUCCESS) << name << when;
            EXPECT_EQ(Bytes(memory, memory + kBytes), content_) << name << when;
            stage_.reset();
        }
    }
}

TEST_F(StageTest, WithoutHostMemoryACopyIsRightOrAnError) { copy_without_memory(); }

// Larger than all pinned slots together, and not a multiple of them.
class LargeStageTest : public StageTest {
protected:
    static constexpr std::size_t kLarge = (9u << 20) + 12345;
    LargeStageTest() : StageTest(0, kLarge) {}
};

TEST_F(LargeStageTest, LargeBuffersGoThroughAFewPinnedSlots)
{
    constexpr std::size_t kSlots = 4u << 20;
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kLarge, HETCOLL_STAGE_READ | HETCOLL_STAGE_WRITTEN);
    unsigned char *memory = host();
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), 0u);
    copy(HETCOLL_STAGE_READ);
    EXPECT_EQ(Bytes(memory, memory + kLarge), content_);
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), kSlots);
    EXPECT_EQ(counter(HETCOLL_BYTES_STAGED), kLarge);
    std::memset(memory, 1, kLarge);
    copy(HETCOLL_STAGE_WRITTEN);
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    EXPECT_EQ(content(), Bytes(kLarge, 1));
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), kSlots);
}

TEST_F(LargeStageTest, ManyPiecesOfALargeBufferLeaveItsGapsAlone)
{
    constexpr std::size_t kPiece = 1500001;
    ASSERT_EQ(add(buffer()), 1);
    for (std::size_t first = 0; first + kPiece <= kLarge; first += kPiece + 1) {
        piece(static_cast<std::ptrdiff_t>(first), kPiece, HETCOLL_STAGE_WRITTEN);
    }
    unsigned char *memory = host();
    Bytes expected = content_;
    for (std::size_t first = 0; first + kPiece <= kLarge; first += kPiece + 1) {
        std::memset(memory + first, 1, kPiece);
        std::memset(expected.data() + first, 1, kPiece);
    }
    copy(HETCOLL_STAGE_WRITTEN);
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    EXPECT_EQ(content(), expected);
}

TEST_F(LargeStageTest, ACopyThatFailsHalfWayGoesAnotherWay)
{
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kLarge, HETCOLL_STAGE_READ);
    const unsigned char *memory = host();
    const Faults faults("cuMemcpyAsync:6:999"); // the first one after all slots were filled
    copy(HETCOLL_STAGE_READ);
    EXPECT_TRUE(has_input());
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    EXPECT_EQ(Bytes(memory, memory + kLarge), content_);
}

TEST_F(LargeStageTest, RowsGoThroughTheSlotsTooWhetherTheyFitOneOrNot)
{
    check_rows({0, 1000, 3000, kLarge / 3000});
    stage_.reset();
    check_rows({1, (3u << 20) / 2, 2u << 20, kLarge / (2u << 20)});
}

TEST_F(LargeStageTest, AFailureIsToldAndTheStageWorksAgain)
{
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kLarge, HETCOLL_STAGE_READ);
    const unsigned char *memory = host();
    {
        const Faults faults("cuMemcpyAsync:6:999,cuMemcpy:*:999");
        copy(HETCOLL_STAGE_READ);
    }
    EXPECT_EQ(finish(), HETCOLL_ERROR_DEVICE);
    copy(HETCOLL_STAGE_READ);
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    EXPECT_EQ(Bytes(memory, memory + kLarge), content_);
}

TEST_F(LargeStageTest, WithoutHostMemoryACopyIsRightOrAnError) { copy_without_memory(); }

TEST_F(LargeStageTest, WithoutPinnedMemoryTheDriverCopies)
{
    ASSERT_EQ(add(buffer()), 1);
    piece(0, kLarge, HETCOLL_STAGE_READ);
    const unsigned char *memory = host();
    const Faults faults("cuMemHostAlloc:*:2");
    copy(HETCOLL_STAGE_READ);
    EXPECT_EQ(finish(), HETCOLL_SUCCESS);
    EXPECT_EQ(Bytes(memory, memory + kLarge), content_);
}

} // namespace
} // namespace hetcoll
