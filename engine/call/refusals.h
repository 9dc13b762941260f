// Calls that this rank has ended by itself, because it has no memory to begin them. The others wait
// for it in theirs, so it comes to one meeting of each such call to say so; then all ranks end the
// call with an error. Needs no memory but this.
#pragma once

#include "engine/call/operation.h"
#include "engine/call/operation_queue.h"

#include <mutex>
#include <optional>

namespace hetcoll {

class Refusals {
public:
    // Both outlive it.
    Refusals(Engine &engine, OperationQueue &queue) noexcept : engine_(engine), queue_(queue) {}
    Refusals(const Refusals &) = delete;
    Refusals &operator=(const Refusals &) = delete;

    // Thread safe, both. `number` is hetcoll_call::number.
    void add(unsigned short number, int tag) noexcept;
    // True: none is left.
    [[nodiscard]] bool step() noexcept;

private:
    void start(unsigned short number, int tag) noexcept;

    Engine &engine_;
    OperationQueue &queue_;
    std::mutex mutex_; // of the next ones
    hetcoll_call call_{};
    std::optional<Operation> operation_; // that refuses call_
    // Another call was refused meanwhile. The last one's number is enough: ranks that hear it end
    // all calls up to it.
    bool more_ = false;
    unsigned short last_ = 0;
};

} // namespace hetcoll
