// Small vectors in device memory that the processor reads and writes itself.
#include "engine/call/protocols.h"
#include "test/unit/device_gdr.h"
#include "test/unit/engine_scripted_peer.h"

namespace hetcoll::test {
namespace {

constexpr std::size_t kBlock = std::size_t{2} << 20; // an allocation that shares no block

class CpuPathTest : public CallTest {
protected:
    explicit CpuPathTest(const hetcoll_settings &settings = usual_settings()) : CallTest(settings)
    {
    }

    [[nodiscard]] hetcoll_call call_on(const void *send, void *recv, std::size_t count = kFew)
    {
        hetcoll_call made{};
        made.send = send;
        made.recv = recv;
        made.kind = HETCOLL_INT32;
        made.op = HETCOLL_SUM;
        made.count = count;
        made.span = count * sizeof(int);
        made.dense = 1;
        made.tag = HETCOLL_TAGS;
        return made;
    }
    void answer(std::size_t count = kFew) { peer_.answer({sum_of(theirs(count), kDeviceMemory)}); }
    // One call, checked, on memory of the device.
    void check_call(CUdeviceptr send, CUdeviceptr recv, std::size_t count = kFew)
    {
        upload(send, mine(count));
        if (send != recv) {
            upload(recv, theirs(count));
        }
        answer(count);
        EXPECT_EQ(run(call_on(pointer(send), pointer(recv), count)), HETCOLL_SUCCESS);
        EXPECT_EQ(download<int>(recv, count), sums(count));
        if (send != recv) {
            EXPECT_EQ(download<int>(send, count), mine(count));
        }
    }
    void check_calls(unsigned calls, CUdeviceptr send, CUdeviceptr recv, std::size_t count = kFew)
    {
        for (unsigned i = 0; i < calls; ++i) {
            check_call(send, recv, count);
        }
    }
    // The driver calls of one call.
    [[nodiscard]] std::uint64_t driver_calls(CUdeviceptr send, CUdeviceptr recv)
    {
        upload(send, mine(kFew));
        answer();
        const hetcoll_call made = call_on(pointer(send), pointer(recv));
        const CallCount calls;
        EXPECT_EQ(run(made), HETCOLL_SUCCESS);
        const std::uint64_t used = calls.get();
        EXPECT_EQ(download<int>(recv, kFew), sums(kFew));
        return used;
    }
    [[nodiscard]] std::uint64_t reads() const { return counter(HETCOLL_CPU_READS); }
    [[nodiscard]] std::uint64_t writes() const { return counter(HETCOLL_CPU_WRITES); }
    static constexpr unsigned kBefore = CpuViews::kCallsBefore;
};

// Device memory until the end of the scope.
class Memory {
public:
    explicit Memory(std::size_t bytes) : at(cuda().allocate(bytes)) {}
    ~Memory()
    {
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        HETCOLL_REQUIRE(cuda().driver->cuMemFree(at));
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    const CUdeviceptr at;
};

TEST_F(CpuPathTest, AfterEightCallsTheProcessorReadsAndWritesABuffer)
{
    const Memory memory(64);
    check_calls(kBefore, memory.at, memory.at);
    EXPECT_EQ(reads() + writes(), 0u);
    EXPECT_EQ(counter(HETCOLL_HELD_VIEWS), GdrLibrary::kPageBytes);
    check_calls(3, memory.at, memory.at);
    EXPECT_EQ(reads(), 3u);
    EXPECT_EQ(writes(), 3u);
    EXPECT_EQ(counter(HETCOLL_CALLS_HOST), kBefore + 3);
}

TEST_F(CpuPathTest, ACallMakesFiveDriverCallsInPlaceAndSixWithTwoAllocations)
{
    const Memory one(64), other(64), both(kBlock);
    const CUdeviceptr half = both.at + kBlock / 2;
    check_calls(kBefore, one.at, one.at);
    check_calls(2 * kBefore, one.at, other.at);
    check_calls(kBefore, half, both.at);
    // BUFFER_ID, the current context, the capture mode twice, cuStreamQuery.
    EXPECT_EQ(driver_calls(one.at, one.at), 5u);
    EXPECT_EQ(driver_calls(one.at, other.at), 6u);
    EXPECT_EQ(driver_calls(half, both.at), 5u);
}

TEST_F(CpuPathTest, WorksFromAThreadWithoutAContext)
{
    const Memory memory(64);
    check_calls(kBefore, memory.at, memory.at);
    upload(memory.at, mine(kFew));
    answer();
    std::thread([&] {
        EXPECT_EQ(run(call_on(pointer(memory.at), pointer(memory.at))), HETCOLL_SUCCESS);
        CUcontext current = cuda().context;
        HETCOLL_REQUIRE(cuda().driver->cuCtxGetCurrent(&current));
        EXPECT_EQ(current, nullptr);
    }).join();
    EXPECT_EQ(reads(), 1u);
    EXPECT_EQ(download<int>(memory.at, kFew), sums(kFew));
}

// ---- Memory that goes ----

TEST_F(CpuPathTest, ABufferThatIsFreedAndAllocatedAgainIsNotReadByItsOldView)
{
    std::optional<Memory> memory(std::in_place, kBlock);
    const CUdeviceptr at = memory->at;
    check_calls(kBefore + 1, at, at);
    ASSERT_EQ(reads(), 1u);
    for (unsigned round = 1; round <= 3; ++round) {
        memory.reset();
        memory.emplace(kBlock);
        ASSERT_EQ(memory->at, at);
        check_calls(kBefore, at, at);
        EXPECT_EQ(reads(), round);
        check_call(at, at);
        EXPECT_EQ(reads(), round + 1);
    }
}

TEST_F(CpuPathTest, AViewIsGivenBackWhenItsBufferHasGone)
{
    const int before = gdr_pins();
    const Memory other(64);
    {
        const Memory memory(kBlock);
        check_calls(kBefore, memory.at, memory.at);
        EXPECT_EQ(gdr_pins(), before + 1);
    }
    check_calls(kBefore, other.at, other.at); // the next view that is made
    EXPECT_EQ(gdr_pins(), before + 1);
    {
        const Memory memory(kBlock);
        check_calls(kBefore, memory.at, memory.at);
        EXPECT_EQ(gdr_pins(), before + 2);
    }
    check_calls(2048, other.at, other.at); // or after many calls
    EXPECT_EQ(gdr_pins(), before + 1);
    {
        const Memory memory(kBlock);
        check_calls(kBefore, memory.at, memory.at);
    }
    make_comm(); // or when a communicator is freed
    EXPECT_EQ(gdr_pins(), before + 1);
    comm_.reset();
    process_.reset();
    EXPECT_EQ(gdr_pins(), before);
}

TEST_F(CpuPathTest, APersistentCallSeesThatItsBufferIsAnotherOne)
{
    std::optional<Memory> memory(std::in_place, kBlock);
    const CUdeviceptr at = memory->at;
    const hetcoll_call made = call_on(pointer(at), pointer(at));
    Operation operation(*comm_, made, Start::kPersistent);
    const auto start = [&] {
        upload(at, mine(kFew));
        answer();
        EXPECT_EQ(finish(operation), HETCOLL_SUCCESS);
        EXPECT_EQ(download<int>(at, kFew), sums(kFew));
        operation.rewind();
    };
    for (unsigned i = 0; i < kBefore; ++i) {
        start();
    }
    EXPECT_EQ(reads(), 0u);
    start();
    EXPECT_EQ(reads(), 1u);
    memory.reset();
    memory.emplace(kBlock);
    ASSERT_EQ(memory->at, at);
    for (int i = 0; i < 3; ++i) {
        start();
    }
    EXPECT_EQ(reads(), 1u);
}

TEST_F(CpuPathTest, ViewsAreBoundedInNumber)
{
    const int before = gdr_pins();
    std::deque<Memory> memory;
    for (std::size_t i = 0; i < CpuViews::kMostViews + 3; ++i) {
        const CUdeviceptr at = memory.emplace_back(64).at;
        check_calls(kBefore + 1, at, at);
    }
    EXPECT_EQ(gdr_pins() - before, static_cast<int>(CpuViews::kMostViews));
    EXPECT_EQ(counter(HETCOLL_HELD_VIEWS), CpuViews::kMostViews * GdrLibrary::kPageBytes);
    EXPECT_EQ(reads(), CpuViews::kMostViews);
}

// ---- Order ----

TEST_F(CpuPathTest, NothingIsReadBeforeTheLegacyStreamIsIdle)
{
    const Memory memory(64), values(64);
    check_calls(kBefore, memory.at, memory.at);
    upload(values.at, mine(kFew));
    for (const bool waits_long : {false, true}) {
        upload(memory.at, theirs(kFew));
        answer();
        HeldDevices held;
        HETCOLL_REQUIRE(cuda().driver->cuMemcpyAsync(memory.at, values.at, kFew * sizeof(int),
                                                     CU_STREAM_LEGACY));
        const hetcoll_call made = call_on(pointer(memory.at), pointer(memory.at));
        Operation operation(*comm_, made);
        for (int i = 0; i < (waits_long ? 200 : 5); ++i) {
            ASSERT_FALSE(operation.step());
        }
        EXPECT_TRUE(peer_.said().empty());
        held.release();
        HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(CU_STREAM_LEGACY));
        EXPECT_EQ(finish(operation), HETCOLL_SUCCESS);
        EXPECT_EQ(download<int>(memory.at, kFew), sums(kFew));
        EXPECT_EQ(reads(), 1u); // after a while it is copied
    }
}

// The program's stream that reads the old content of the receive buffer.
TEST_F(CpuPathTest, NothingIsWrittenBeforeTheLegacyStreamIsIdle)
{
    const Memory recv(64), kept(64);
    std::vector<int> input = mine(kFew);
    for (unsigned i = 0; i < kBefore; ++i) {
        answer();
        ASSERT_EQ(run(call_on(input.data(), pointer(recv.at))), HETCOLL_SUCCESS);
    }
    upload(recv.at, theirs(kFew));
    answer();
    HeldDevices held;
    HETCOLL_REQUIRE(
        cuda().driver->cuMemcpyAsync(kept.at, recv.at, kFew * sizeof(int), CU_STREAM_LEGACY));
    const hetcoll_call made = call_on(input.data(), pointer(recv.at));
    Operation operation(*comm_, made);
    for (int i = 0; i < 5; ++i) {
        ASSERT_FALSE(operation.step());
    }
    held.release();
    HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(CU_STREAM_LEGACY));
    EXPECT_EQ(finish(operation), HETCOLL_SUCCESS);
    EXPECT_EQ(writes(), 1u);
    EXPECT_EQ(download<int>(recv.at, kFew), sums(kFew));
    EXPECT_EQ(download<int>(kept.at, kFew), theirs(kFew));
}

// The trial of a view writes to the receive buffer.
TEST_F(CpuPathTest, NorIsItTriedBeforeTheLegacyStreamIsIdle)
{
    const Memory recv(64), kept(64);
    std::vector<int> input = mine(kFew);
    for (unsigned i = 1; i < kBefore; ++i) {
        answer();
        ASSERT_EQ(run(call_on(input.data(), pointer(recv.at))), HETCOLL_SUCCESS);
    }
    upload(recv.at, theirs(kFew));
    answer();
    HeldDevices held;
    HETCOLL_REQUIRE(
        cuda().driver->cuMemcpyAsync(kept.at, recv.at, kFew * sizeof(int), CU_STREAM_LEGACY));
    const hetcoll_call made = call_on(input.data(), pointer(recv.at));
    Operation operation(*comm_, made);
    for (int i = 0; i < 200; ++i) {
        ASSERT_FALSE(operation.step());
    }
    held.release();
    EXPECT_EQ(finish(operation), HETCOLL_SUCCESS);
    EXPECT_NE(counter(HETCOLL_HELD_VIEWS), 0u);
    EXPECT_EQ(download<int>(kept.at, kFew), theirs(kFew));
}

class IndependentStreamsTest : public CpuPathTest {
protected:
    static hetcoll_settings settings()
    {
        hetcoll_settings settings = usual_settings();
        settings.streams = HETCOLL_STREAMS_INDEPENDENT;
        return settings;
    }
    IndependentStreamsTest() : CpuPathTest(settings()) {}
};

TEST_F(IndependentStreamsTest, OneDriverCallIsLeftInPlaceAndTwoWithTwoAllocations)
{
    const Memory one(64), other(64);
    check_calls(kBefore, one.at, one.at);
    check_calls(2 * kBefore, one.at, other.at);
    EXPECT_EQ(driver_calls(one.at, one.at), 1u);
    EXPECT_EQ(driver_calls(one.at, other.at), 2u);
}

// ---- Which buffers ----

TEST_F(CpuPathTest, EachBufferHasAViewOfItsOwn)
{
    const Memory send(64), recv(64);
    check_calls(kBefore, send.at, recv.at);
    EXPECT_EQ(counter(HETCOLL_HELD_VIEWS), 2 * GdrLibrary::kPageBytes);
    check_call(send.at, recv.at);
    EXPECT_EQ(reads(), 1u);
    EXPECT_EQ(writes(), 1u);
}

// Reading does not show that writing works.
TEST_F(CpuPathTest, ABufferThatWasSentIsTriedBeforeItIsWritten)
{
    const Memory proof(64), vector(64), recv(64);
    check_calls(kBefore, proof.at, proof.at);
    const GdrFaults faults("gdr_map:1:private"); // reads right, writes to nobody
    check_calls(kBefore + 1, vector.at, proof.at);
    ASSERT_EQ(reads(), 1u);
    check_calls(3, recv.at, vector.at);
    EXPECT_FALSE(process_->gpus().cpu_views().is_on());
}

TEST_F(CpuPathTest, OneBufferMayBeOnTheHost)
{
    const Memory memory(64);
    std::vector<int> host = mine(kFew);
    check_calls(kBefore, memory.at, memory.at);
    answer();
    EXPECT_EQ(run(call_on(host.data(), pointer(memory.at))), HETCOLL_SUCCESS);
    EXPECT_EQ(download<int>(memory.at, kFew), sums(kFew));
    EXPECT_EQ(reads(), 0u);
    EXPECT_EQ(writes(), 1u);
    upload(memory.at, mine(kFew));
    answer();
    EXPECT_EQ(run(call_on(pointer(memory.at), host.data())), HETCOLL_SUCCESS);
    EXPECT_EQ(host, sums(kFew));
    EXPECT_EQ(reads(), 1u);
}

TEST_F(CpuPathTest, OnlyMemoryOfCuMemAllocHasAView)
{
    CUdeviceptr managed = 0, pooled = 0;
    HETCOLL_REQUIRE(cuda().driver->cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    HETCOLL_REQUIRE(cuda().cuMemAllocAsync(&pooled, 64, CU_STREAM_LEGACY));
    HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(CU_STREAM_LEGACY));
    for (const CUdeviceptr memory : {managed, pooled}) {
        check_calls(kBefore + 2, memory, memory);
    }
    EXPECT_EQ(reads() + writes(), 0u);
    EXPECT_EQ(counter(HETCOLL_HELD_VIEWS), 0u);
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(managed));
    HETCOLL_REQUIRE(cuda().cuMemFreeAsync(pooled, CU_STREAM_LEGACY));
}

TEST_F(CpuPathTest, LargerCallsGoAnotherWay)
{
    const Memory memory(kMany * sizeof(int));
    check_calls(kBefore + 1, memory.at, memory.at);
    find_peers();
    upload(memory.at, mine(kMany));
    peer_.answer({says(kDeviceMemory), data_of(theirs(kMany)), says(kDeviceMemory)});
    EXPECT_EQ(run(call_on(pointer(memory.at), pointer(memory.at), kMany)), HETCOLL_SUCCESS);
    EXPECT_EQ(download<int>(memory.at, kMany), sums(kMany));
    EXPECT_EQ(reads(), 1u);
}

class CpuLimitsTest : public CpuPathTest {
protected:
    static hetcoll_settings settings()
    {
        hetcoll_settings settings = usual_settings();
        settings.cpu_read_limit = 8;
        settings.cpu_write_limit = 16;
        return settings;
    }
    CpuLimitsTest() : CpuPathTest(settings()) {}
};

TEST_F(CpuLimitsTest, ReadsAndWritesHaveTheirOwn)
{
    const Memory memory(64);
    check_calls(kBefore, memory.at, memory.at, 4);
    check_calls(1, memory.at, memory.at, 2);
    EXPECT_EQ(reads(), 1u);
    EXPECT_EQ(writes(), 1u);
    check_calls(1, memory.at, memory.at, 3);
    EXPECT_EQ(reads(), 1u);
    EXPECT_EQ(writes(), 2u);
    check_calls(1, memory.at, memory.at, 4);
    EXPECT_EQ(writes(), 3u);
    check_calls(1, memory.at, memory.at, 5);
    EXPECT_EQ(reads(), 1u);
    EXPECT_EQ(writes(), 3u);
}

TEST_F(CpuPathTest, WhatIsMeasuredTakesThePlaceOfTheDefaults)
{
    EXPECT_EQ(process_->gpus().cpu_views().limits(false).read_bytes, 2048u);
    EXPECT_EQ(process_->gpus().cpu_views().limits(true).read_bytes, 16384u);
    process_->gpus().cpu_views().take_measured({.read_bytes = 4, .write_bytes = 12});
    EXPECT_EQ(process_->gpus().cpu_views().limits(true).read_bytes, 4u);
    EXPECT_EQ(process_->gpus().cpu_views().limits(false).write_bytes, 12u);
}

// ---- Faults: the result is right, whatever fails ----

struct Problem {
    const char *gdr, *driver;
};
class CpuFaultsTest : public CpuPathTest, public ::testing::WithParamInterface<Problem> {};

TEST_P(CpuFaultsTest, OfEveryStepLeaveTheResultRight)
{
    const Memory send(64), recv(64), big(kBlock);
    const GdrFaults gdr(GetParam().gdr);
    const Faults driver(GetParam().driver);
    check_calls(kBefore + 5, send.at, recv.at);
    check_calls(kBefore + 5, big.at, big.at);
    check_calls(3, send.at, recv.at);
}
INSTANTIATE_TEST_SUITE_P(
    Steps, CpuFaultsTest,
    ::testing::Values(
        Problem{"gdr_open:*:2", ""}, Problem{"gdr_open:*:2", "cuMemGetHandleForAddressRange:*:801"},
        Problem{"gdr_runtime_get_version:*:1", ""},
        Problem{"gdr_driver_get_version:*:1", "cuDriverGetVersion:*:999"},
        Problem{"gdr_pin_buffer:1:12", ""}, Problem{"gdr_pin_buffer:*:12", ""},
        Problem{"gdr_pin_buffer:*:12", "cuMemGetHandleForAddressRange:*:1"},
        Problem{"gdr_map:1:12", ""}, Problem{"gdr_map:+2:22", ""},
        Problem{"gdr_map:*:22", "cuMemGetHandleForAddressRange:1:1"}, Problem{"gdr_map:1:copy", ""},
        Problem{"gdr_map:1:private", ""}, Problem{"gdr_map:+2:private", ""},
        Problem{"gdr_copy_to_mapping:1:22", ""}, Problem{"gdr_copy_to_mapping:2:22", ""},
        Problem{"gdr_copy_to_mapping:3:22", ""}, Problem{"gdr_copy_from_mapping:1:22", ""},
        Problem{"gdr_copy_from_mapping:2:22", ""}, Problem{"gdr_copy_from_mapping:3:22", ""},
        Problem{"gdr_copy_from_mapping:4:22", ""},
        Problem{"gdr_unmap:*:22,gdr_unpin_buffer:1:22", ""}, Problem{"", "cuStreamQuery:1:999"},
        Problem{"", "cuStreamQuery:*:906"}, Problem{"", "cuCtxGetCurrent:*:201"},
        Problem{"", "cuThreadExchangeStreamCaptureMode:*:801"},
        Problem{"", "cuDeviceGetAttribute:*:999"}));

TEST_F(CpuPathTest, ACopyThatFailsDuringTheTrialOnlyCostsTheView)
{
    const Memory memory(64);
    check_calls(kBefore - 1, memory.at, memory.at);
    {
        const Faults faults("cuMemcpyAsync:2:999"); // the first one reads the vector
        check_call(memory.at, memory.at);
    }
    check_calls(3, memory.at, memory.at);
    EXPECT_EQ(reads(), 0u);
}

TEST_F(CpuPathTest, AMappingOfOtherMemoryEndsThePathForGood)
{
    for (const char *const fault : {"gdr_map:1:copy", "gdr_map:1:private"}) {
        const Memory memory(64), other(64);
        comm_.reset();
        process_ = std::move(*Process::create(usual_settings()));
        make_comm();
        {
            const GdrFaults faults(fault);
            check_calls(kBefore, memory.at, memory.at);
        }
        EXPECT_FALSE(process_->gpus().cpu_views().is_on());
        check_calls(kBefore + 2, other.at, other.at);
        EXPECT_EQ(reads() + writes(), 0u);
        EXPECT_EQ(counter(HETCOLL_HELD_VIEWS), 0u);
    }
}

TEST_F(CpuPathTest, ASendBufferOfOneByteThroughoutProvesNothing)
{
    const Memory send(64), recv(64);
    const std::vector<int> zeros(kFew);
    for (unsigned i = 0; i < kBefore + 1; ++i) {
        upload(send.at, zeros);
        answer();
        ASSERT_EQ(run(call_on(pointer(send.at), pointer(recv.at))), HETCOLL_SUCCESS);
        EXPECT_EQ(download<int>(recv.at, kFew), theirs(kFew));
    }
    EXPECT_EQ(reads(), 0u);
    EXPECT_EQ(writes(), 1u);
}

TEST_F(CpuPathTest, WithoutAnyWayNobodyLooksAgain)
{
    const Memory memory(64);
    const GdrFaults gdr("gdr_open:*:2");
    const Faults driver("cuDriverGetVersion:*:999");
    check_calls(kBefore, memory.at, memory.at);
    EXPECT_FALSE(process_->gpus().cpu_views().is_on());
}

// ---- Which calls ----

// Horovod's half is one. Sums of halves of small numbers are sums.
hetcoll_call user_call(hetcoll_call made, bool known)
{
    made.count = made.span / 2;
    made.kind = known ? static_cast<int>(HETCOLL_UINT16) : -1;
    made.user_op = 2;
    made.reason = HETCOLL_REASON_USER_OP;
    return made;
}

TEST_F(CpuPathTest, UserDefinedOpsThatAreKnownGoThisWay)
{
    const Memory memory(64);
    check_calls(kBefore, memory.at, memory.at);
    upload(memory.at, mine(kFew));
    answer();
    EXPECT_EQ(run(user_call(call_on(pointer(memory.at), pointer(memory.at)), true)),
              HETCOLL_SUCCESS);
    EXPECT_EQ(download<int>(memory.at, kFew), sums(kFew));
    EXPECT_EQ(reads(), 1u);
    EXPECT_EQ(writes(), 1u);
}

TEST_F(CpuPathTest, IfAnotherRankDoesNotKnowTheOpWhatWasReadIsStaged)
{
    const Memory memory(64);
    check_calls(kBefore, memory.at, memory.at);
    upload(memory.at, mine(kFew));
    peer_.answer({sum_of(theirs(kFew), kDeviceMemory | kUnknownOp), says(kDeviceMemory)});
    hetcoll_call made = user_call(call_on(pointer(memory.at), pointer(memory.at)), true);
    stage_by_previous(made);
    previous_.output = sums(kFew);
    EXPECT_EQ(run(made), HETCOLL_SUCCESS);
    EXPECT_EQ(previous_.input, mine(kFew));
    EXPECT_EQ(download<int>(memory.at, kFew), sums(kFew));
    EXPECT_EQ(counter(HETCOLL_STAGED_OTHER_RANK), 1u);
}

TEST_F(CpuPathTest, WhatIsNotSummedByOneMeetingIsCopied)
{
    const Memory memory(64);
    check_calls(kBefore + 1, memory.at, memory.at);
    ASSERT_EQ(reads(), 1u);
    hetcoll_call made = call_on(pointer(memory.at), pointer(memory.at));
    Call call(*comm_, made, false);
    call.bytes = made.span;
    call.buffers.send = call.buffers.recv = *process_->gpus().pointers().find(made.recv);
    EXPECT_TRUE(may_use_cpu(call));
    made.kind = -1; // an op that this rank does not know
    EXPECT_FALSE(may_use_cpu(call));
    made.kind = HETCOLL_INT32;
    made.collective = HETCOLL_BCAST;
    EXPECT_FALSE(may_use_cpu(call));
    made.collective = HETCOLL_ALLREDUCE;
    call.closes_later = true; // fixed point
    EXPECT_FALSE(may_use_cpu(call));
}

class CpuOffTest : public CpuPathTest {
protected:
    static hetcoll_settings settings()
    {
        hetcoll_settings settings = usual_settings();
        settings.cpu_read_limit = settings.cpu_write_limit = 0;
        return settings;
    }
    CpuOffTest() : CpuPathTest(settings()) {}
};

TEST_F(CpuOffTest, NothingIsMapped)
{
    const Memory memory(64);
    check_calls(kBefore + 2, memory.at, memory.at);
    EXPECT_EQ(counter(HETCOLL_HELD_VIEWS) + reads() + writes(), 0u);
}

} // namespace
} // namespace hetcoll::test
