// Memory freed while a queued call is pending, and streams that wait for one.
#include "device/queued_calls.h"
#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;

class QueuedCallsTest : public ::testing::Test {
protected:
    void SetUp() override { calls_.open(); }
    void TearDown() override
    {
        calls_.close();
        HETCOLL_REQUIRE(cuda().driver->cuCtxSynchronize());
    }

    QueuedCalls calls_;
    Device device_{*cuda().driver, cuda().context, -1, nullptr, StreamOrder::kAfterLegacy, &calls_};
};

TEST_F(QueuedCallsTest, WhatIsFreedMeanwhileIsFreedAfterTheLast)
{
    const CallCount frees("cuMemFree");
    calls_.begin();
    calls_.begin();
    {
        const auto memory = device_.make_memory(100);
    }
    EXPECT_EQ(frees.get(), 0u);
    calls_.end();
    EXPECT_EQ(frees.get(), 0u);
    calls_.end();
    EXPECT_EQ(frees.get(), 1u);
    {
        const auto memory = device_.make_memory(100);
    }
    EXPECT_EQ(frees.get(), 2u);
}

TEST_F(QueuedCallsTest, StreamsAndEventsAreKeptToo)
{
    const CallCount streams("cuStreamDestroy"), events("cuEventDestroy"), pinned("cuMemFreeHost");
    calls_.begin();
    {
        const auto stream = device_.make_stream();
        const auto event = device_.make_event();
        const auto memory = device_.make_pinned(100);
    }
    EXPECT_EQ(streams.get() + events.get() + pinned.get(), 0u);
    calls_.end();
    EXPECT_EQ(streams.get() + events.get() + pinned.get(), 3u);
}

TEST_F(QueuedCallsTest, NothingMayWaitForTheDeviceWhileOneIsPending)
{
    EXPECT_TRUE(QueuedCalls::Waiting(&calls_).may());
    calls_.begin();
    EXPECT_FALSE(QueuedCalls::Waiting(&calls_).may());
    calls_.end();
    EXPECT_TRUE(QueuedCalls::Waiting(&calls_).may());
    EXPECT_TRUE(QueuedCalls::Waiting(nullptr).may());
}

TEST_F(QueuedCallsTest, ACallBecomesPendingAfterADriverCallThatMayWait)
{
    std::atomic<bool> begun{false};
    std::thread other;
    {
        const QueuedCalls::Waiting waiting(&calls_);
        ASSERT_TRUE(waiting.may());
        const QueuedCalls::Waiting again(&calls_); // as one calls the other
        EXPECT_TRUE(again.may());
        other = std::thread([&] {
            calls_.begin();
            begun = true;
        });
        EXPECT_FALSE(begun);
    }
    other.join();
    EXPECT_TRUE(begun);
    calls_.end();
}

class WaitTest : public QueuedCallsTest, public ::testing::WithParamInterface<Device::WaitsBy> {};

// The host lets the stream go on by a store; the number goes round at 2^32.
TEST_P(WaitTest, AStreamGoesOnWhenTheNumberHasCome)
{
    for (const std::uint32_t value : {1u, 0u, 0x80000000u}) {
        const auto pinned = device_.make_pinned(sizeof(std::uint32_t));
        const auto stream = device_.make_stream(StreamOrder::kIndependent);
        const auto event = device_.make_event();
        ASSERT_TRUE(pinned.ok() && stream.ok() && event.ok());
        const auto flag = device_.address_of(*pinned);
        ASSERT_TRUE(flag.ok());
        ASSERT_TRUE(device_.kernels().load().ok());
        auto *const word = static_cast<std::uint32_t *>(pinned->get());
        *word = value - 2;
        ASSERT_TRUE(device_.wait_async(GetParam(), *flag, value, stream->get()).ok());
        ASSERT_TRUE(device_.record(*event, stream->get()).ok());
        EXPECT_FALSE(*device_.is_done(*event));
        __atomic_store_n(word, value - 1, __ATOMIC_RELEASE);
        EXPECT_FALSE(*device_.is_done(*event));
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
        HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(stream->get()));
        EXPECT_TRUE(*device_.is_done(*event));
    }
}
INSTANTIATE_TEST_SUITE_P(Ways, WaitTest,
                         ::testing::Values(Device::WaitsBy::kDriver, Device::WaitsBy::kKernel));

} // namespace
} // namespace hetcoll
