// Streams of all ranks of a communicator, attached to their engines.
#pragma once

#include "engine/call/stream_calls.h"
#include "test/unit/engine_communicators.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

namespace hetcoll::test {

class AttachedStreams {
public:
    // Streams for calls of at most `most_bytes`.
    AttachedStreams(Communicators &ranks, std::size_t most_bytes) : ranks_(ranks)
    {
        for (int rank = 0; rank < ranks.size(); ++rank) {
            One &one = all_.emplace_back();
            HETCOLL_REQUIRE(cuda().driver->cuStreamCreate(&one.stream, CU_STREAM_NON_BLOCKING));
            auto calls = StreamCalls::create(ranks.comm(rank), one.queue, one.stream, most_bytes);
            EXPECT_TRUE(calls.ok()) << calls.status().message();
            one.calls = std::move(*calls);
        }
        attach(HETCOLL_NOT_QUEUED);
        attach(HETCOLL_ATTACHES);
    }
    ~AttachedStreams()
    {
        for (One &one : all_) {
            one.calls.reset();
            HETCOLL_REQUIRE(cuda().driver->cuStreamDestroy(one.stream));
        }
    }
    AttachedStreams(const AttachedStreams &) = delete;
    AttachedStreams &operator=(const AttachedStreams &) = delete;

    [[nodiscard]] CUstream stream(int rank) const { return all_[rank].stream; }
    [[nodiscard]] StreamCalls &calls(int rank) { return *all_[rank].calls; }

    // Queues the call that Engines::call() has made for each rank.
    void enqueue()
    {
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            hetcoll_call call = ranks_.made(rank);
            call.previous_allreduce = nullptr;
            EXPECT_TRUE(calls(rank).enqueue(call));
        }
    }
    void step()
    {
        for (One &one : all_) {
            one.calls->step();
        }
        const hetcoll_p2p table = ranks_.network().rank(0);
        table.progress(table.context);
        std::this_thread::yield(); // to the device
    }
    // Until all calls of all ranks are complete. False: they are not.
    bool run()
    {
        for (int turn = 0; turn < 30000; ++turn) {
            step();
            bool idle = true;
            for (const One &one : all_) {
                idle = idle && one.calls->is_idle();
            }
            if (idle) {
                return true;
            }
            if (turn > 1000) { // others have the processors
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }
        return false;
    }

private:
    struct One {
        CUstream stream = nullptr;
        OperationQueue queue;
        std::unique_ptr<StreamCalls> calls;
    };

    // The first: all that a communicator's first call makes.
    void attach(hetcoll_queued queued)
    {
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            const Scratch &scratch = *ranks_.comm(rank).reserved().scratch;
            const std::size_t count =
                queued == HETCOLL_NOT_QUEUED
                    ? 2 * ranks_.comm(rank).agreed().small_limit() / sizeof(int)
                    : 1000;
            ranks_.call(rank, scratch.data(), scratch.data(), count);
            ranks_.made(rank).queued = queued;
            ranks_.made(rank).context = &all_[rank].calls->prepared();
        }
        EXPECT_TRUE(ranks_.run());
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            EXPECT_EQ(ranks_.result(rank), HETCOLL_SUCCESS);
        }
    }

    Communicators &ranks_;
    std::deque<One> all_;
};

} // namespace hetcoll::test
