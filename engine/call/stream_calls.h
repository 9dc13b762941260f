// Calls of one communicator in the order of one CUDA stream. An event on the stream tells that the
// stream has come to the call; whoever makes progress then runs it, as any operation; the stream
// waits for a number in page-locked memory, which the host stores when the call is complete. So no
// kernel waits for another rank, and an error lets the stream go on.
#pragma once

#include "engine/call/operation.h"
#include "engine/call/operation_queue.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace hetcoll {

class StreamCalls {
public:
    static constexpr int kMostCalls = 64; // pending at a time

    // What this rank needs, and no other rank; for calls of at most `most_bytes`. Engine and queue
    // outlive it. Requires that no queued call of this process is pending.
    static Result<std::unique_ptr<StreamCalls>> create(Engine &engine, OperationQueue &queue,
                                                       CUstream stream, std::size_t most_bytes);
    ~StreamCalls(); // requires is_idle()
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
    // A call, and the event that tells that the stream has come to it.
    class Slot final : public Gate {
    public:
        [[nodiscard]] Result<bool> is_open() override;

        const Device *device = nullptr;
        EventHandle ready;
        Status unmarked; // why there is no event
        hetcoll_call call{};
        std::optional<Operation> operation;
    };

    StreamCalls(Engine &engine, OperationQueue &queue, CUstream stream)
        : engine_(engine), queue_(queue), stream_(stream)
    {
    }
    Status make(std::size_t most_bytes);
    Status reserve(const std::shared_ptr<Device> &device, std::size_t most_bytes);
    Status find_how_to_wait();
    void note(int result) noexcept;
    [[nodiscard]] QueuedCalls &pending() noexcept { return engine_.process().store().queued(); }

    Engine &engine_;
    OperationQueue &queue_;
    const CUstream stream_;
    std::shared_ptr<Device> device_; // before what is made in it
    PinnedMemory memory_;
    std::uint32_t *released_ = nullptr; // pinned: how many calls are complete
    CUdeviceptr flag_ = 0;              // its address for the GPU
    Device::WaitsBy waits_by_ = Device::WaitsBy::kDriver;
    std::array<Slot, kMostCalls> slots_;
    std::atomic<std::uint32_t> issued_{0}, done_{0};
    std::atomic<int> error_{HETCOLL_SUCCESS};
};

} // namespace hetcoll
