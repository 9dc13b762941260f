// Calls of one communicator in the order of one CUDA stream. The stream stores a number in
// page-locked memory when it has come to the call; whoever makes progress then runs it, as any
// operation; the stream waits for a number there that the host stores when the call is complete. So
// no kernel waits for another rank, and an error lets the stream go on. Work that can be given to
// the stream beforehand is: prepared.h.
#pragma once

#include "engine/call/operation.h"
#include "engine/call/operation_queue.h"
#include "engine/call/prepared.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace hetcoll {

class StreamCalls {
public:
    static constexpr int kMostCalls = PreparedStream::kMostCalls; // pending at a time

    // Makes what this rank needs, without any other rank, for calls of at most `most_bytes`.
    // Communicator and queue outlive it. Requires that no queued call of this process is pending.
    static Result<std::unique_ptr<StreamCalls>> create(Communicator &comm, OperationQueue &queue,
                                                       CUstream stream, std::size_t most_bytes);
    ~StreamCalls(); // requires is_idle(); waits for the stream
    StreamCalls(const StreamCalls &) = delete;
    StreamCalls &operator=(const StreamCalls &) = delete;

    // Whether a graph is being captured on the stream; an error if that cannot be known, as where
    // another stream's capture forbids to ask.
    [[nodiscard]] Result<bool> is_capturing() const;
    // A call can be queued: number() % kMostCalls is free.
    [[nodiscard]] bool has_room() const noexcept
    {
        return number() - done_.load(std::memory_order_acquire) < kMostCalls;
    }
    [[nodiscard]] std::uint32_t number() const noexcept
    {
        return issued_.load(std::memory_order_acquire);
    }
    [[nodiscard]] bool is_idle() const noexcept
    {
        return number() == done_.load(std::memory_order_acquire);
    }
    // Whether such a call needs no driver once it is queued. The same on all ranks; after attach().
    [[nodiscard]] bool prepares(const hetcoll_call &call) const noexcept
    {
        return prepared_.plan(call).shape != PreparedStream::Shape::kNone;
    }
    // For a call that attaches: its context.
    [[nodiscard]] PreparedStream &prepared() noexcept { return prepared_; }
    // Requires has_room(). The call is queued whatever is returned, since other ranks count on it.
    // False: the stream cannot wait for it, as is logged; the caller must, until is_idle(). Throws
    // std::bad_alloc, and nothing is queued.
    [[nodiscard]] bool enqueue(const hetcoll_call &call);
    // Lets calls advance and releases the stream. One thread at a time. Returns how many have
    // become complete.
    int step();
    // The first error of a call since the last time, as hetcoll_allreduce() returns it.
    [[nodiscard]] int take_error() noexcept
    {
        return error_.exchange(HETCOLL_SUCCESS, std::memory_order_acq_rel);
    }

private:
    // A call; it begins when the stream has come to it.
    class Slot final : public Gate {
    public:
        void begin(std::uint32_t its_number) noexcept
        {
            number = its_number;
            marked.store(false, std::memory_order_relaxed);
        }
        // The stream has been given the mark, or cannot be.
        void open(Status problem) noexcept
        {
            unmarked = std::move(problem);
            marked.store(true, std::memory_order_release);
        }
        [[nodiscard]] Result<bool> is_open() override
        {
            if (!marked.load(std::memory_order_acquire)) {
                return false;
            }
            return unmarked.ok() ? of->prepared_.has_come(number)
                                 : Result<bool>(std::move(unmarked));
        }
        [[nodiscard]] GivenWork *prepared() noexcept override
        {
            return work.shape() == PreparedStream::Shape::kNone ? nullptr : &work;
        }

        StreamCalls *of = nullptr;
        std::uint32_t number = 0; // from 1
        std::atomic<bool> marked{false};
        Status unmarked; // why the stream does not tell
        hetcoll_call call{};
        PreparedCall work;
        std::optional<Operation> operation;
    };

    StreamCalls(Communicator &comm, OperationQueue &queue, CUstream stream)
        : comm_(comm), queue_(queue), stream_(stream), prepared_(comm, stream)
    {
    }
    Status make(std::size_t most_bytes);
    Status reserve(const std::shared_ptr<Device> &device, std::size_t most_bytes);
    void note(int result) noexcept;
    [[nodiscard]] QueuedCalls &pending() noexcept { return comm_.gpus().contexts().queued(); }

    Communicator &comm_;
    OperationQueue &queue_;
    const CUstream stream_;
    std::shared_ptr<Device> device_; // before what is made in it
    PreparedStream prepared_;
    std::array<Slot, kMostCalls> slots_;
    std::atomic<std::uint32_t> issued_{0}, done_{0};
    std::atomic<int> error_{HETCOLL_SUCCESS};
};

} // namespace hetcoll
