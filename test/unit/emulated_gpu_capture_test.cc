// Stream capture: which calls a capture forbids, in which thread and mode.
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

#include <thread>

namespace hetcoll::test {
namespace {

class EmulatedCaptureTest : public ::testing::Test {
protected:
    EmulatedCaptureTest()
    {
        EXPECT_EQ(cu().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        memory = allocate(64);
    }
    ~EmulatedCaptureTest() override
    {
        free_memory(memory);
        EXPECT_EQ(cu().cuStreamDestroy(stream), CUDA_SUCCESS);
    }

    void begin(CUstreamCaptureMode mode)
    {
        EXPECT_EQ(cu().cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
    }
    CUresult end()
    {
        CUgraph graph = nullptr;
        const CUresult result = cu().cuStreamEndCapture(stream, &graph);
        if (graph != nullptr) {
            EXPECT_EQ(cu().cuGraphDestroy(graph), CUDA_SUCCESS);
        }
        return result;
    }
    // Returns the answer of an unsafe call in another thread that is in capture mode `mode`.
    CUresult call_elsewhere(CUstreamCaptureMode mode)
    {
        CUresult result = CUDA_SUCCESS;
        std::thread([&] {
            EXPECT_EQ(cu().cuCtxSetCurrent(context.get()), CUDA_SUCCESS);
            EXPECT_EQ(cu().cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
            EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL); // the default, handed back
            CUdeviceptr other = 0;
            result = cu().cuMemAlloc(&other, 64);
            if (result == CUDA_SUCCESS) {
                result = cu().cuMemFree(other);
            }
        }).join();
        return result;
    }

    PrimaryContext context;
    CUstream stream = nullptr;
    CUdeviceptr memory = 0;
};

TEST_F(EmulatedCaptureTest, CapturedWorkRunsWhenTheGraphIsLaunched)
{
    fill(memory, 1, 1);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(cu().cuMemsetD32Async(memory, 2, 1, stream), CUDA_SUCCESS);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_EQ(cu().cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
    EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CUgraph graph = nullptr;
    ASSERT_EQ(cu().cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    EXPECT_EQ(read_word(memory), 1u);
    CUgraphExec executable = nullptr;
    ASSERT_EQ(cu().cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(read_word(memory), 2u);
    EXPECT_EQ(cu().cuGraphExecDestroy(executable), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(EmulatedCaptureTest, GlobalCaptureForbidsUnsafeCallsOfOtherThreadsAndBreaks)
{
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_EQ(call_elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(EmulatedCaptureTest, ThreadsInARelaxedModeMayCallAnything)
{
    for (const auto mode : {CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL}) {
        begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
        EXPECT_EQ(call_elsewhere(mode), CUDA_SUCCESS);
        EXPECT_EQ(end(), CUDA_SUCCESS);
    }
}

TEST_F(EmulatedCaptureTest, ThreadLocalCaptureForbidsOnlyItsOwnThread)
{
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    EXPECT_EQ(call_elsewhere(CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    CUdeviceptr other = 0;
    EXPECT_EQ(cu().cuMemAlloc(&other, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(end(), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(EmulatedCaptureTest, LegacyStreamIsForbiddenWhileABlockingStreamIsCaptured)
{
    CUstream blocking = nullptr;
    ASSERT_EQ(cu().cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemsetD32Async(memory, 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CUgraph graph = nullptr;
    EXPECT_EQ(cu().cuStreamEndCapture(blocking, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(cu().cuStreamDestroy(blocking), CUDA_SUCCESS);
}

TEST_F(EmulatedCaptureTest, LegacyStreamItselfCannotBeCaptured)
{
    EXPECT_EQ(cu().cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
              CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(EmulatedCaptureTest, CapturedEventCannotBeQueried)
{
    CUevent event = nullptr;
    ASSERT_EQ(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    EXPECT_EQ(cu().cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    EXPECT_EQ(end(), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventDestroy(event), CUDA_SUCCESS);
}

} // namespace
} // namespace hetcoll::test
