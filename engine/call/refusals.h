// Calls that this rank has ended by itself, because it has no memory to begin them, or a graph is
// being captured on their stream, and that it still has to tell the others of, in their turn among
// the communicator's calls. Needs no memory but this.
#pragma once

#include "engine/call/operation_queue.h"
#include "engine/call/refusal.h"

#include <cstdint>
#include <mutex>
#include <optional>

namespace hetcoll {

class Refusals final : public Queued {
public:
    // Both outlive it.
    Refusals(Communicator &comm, OperationQueue &queue) noexcept : comm_(comm), queue_(queue) {}

    // Thread safe, both. `number` is hetcoll_call::number.
    void add(std::uint32_t number, hetcoll_why_refused why, int tag) noexcept;
    // Lets the queue advance. True: there is nothing left to tell.
    [[nodiscard]] bool are_over();

    // For the queue.
    [[nodiscard]] bool step() override;
    void fail_without_memory() noexcept override;

private:
    void start(std::uint32_t number, hetcoll_why_refused why, int tag) noexcept;
    [[nodiscard]] hetcoll_call call() const noexcept;
    void end(int result) noexcept;

    Communicator &comm_;
    OperationQueue &queue_;
    std::optional<Refusal> refusal_; // that has begun
    std::mutex mutex_;               // of the next ones
    int tag_ = 0;
    std::uint32_t number_ = 0; // of the call that is refused now
    hetcoll_why_refused why_{};
    bool runs_ = false;
    // Another call was refused meanwhile. The last one's number is enough: ranks that hear it end
    // all calls up to it.
    bool more_ = false;
    std::uint32_t last_ = 0;
    hetcoll_why_refused last_why_{};
};

} // namespace hetcoll
