// The incomplete operations of one communicator. All ranks start them
// in the same order and only the first one runs, so everything that belongs to a communicator
// belongs to one operation at a time.
#pragma once

#include <atomic>
#include <mutex>

namespace hetcoll {

class Queued {
public:
    // True when complete; else call again after the progress function. Throws std::bad_alloc only;
    // then fail_without_memory() takes the place of its returning true.
    [[nodiscard]] virtual bool step() = 0;
    virtual void fail_without_memory() noexcept = 0;

    // For whoever waits while a queue steps it, maybe in another thread.
    [[nodiscard]] bool is_complete() const noexcept
    {
        return complete_.load(std::memory_order_acquire);
    }
    void set_complete() noexcept { complete_.store(true, std::memory_order_release); }

protected:
    ~Queued() = default;
    // Before it is queued again.
    void set_incomplete() noexcept { complete_.store(false, std::memory_order_relaxed); }

private:
    friend class OperationQueue;
    Queued *next_ = nullptr;
    std::atomic<bool> complete_{false};
};

class OperationQueue {
public:
    // Until it is complete. Thread safe, as step(). Allocates nothing.
    void push(Queued &operation) noexcept;
    // Lets the first operation advance, and those behind it as it completes. Does nothing where
    // another thread is doing so, or this one further up its stack.
    void step();

private:
    friend class QueueTurn;
    [[nodiscard]] Queued *first() noexcept;
    [[nodiscard]] bool pop() noexcept; // true if none is left

    std::atomic<int> length_{0};
    std::atomic<bool> running_{false};
    std::mutex mutex_; // of the next ones
    Queued *first_ = nullptr, *last_ = nullptr;
};

// A blocking call's way past the queue while that is empty, for one locked instruction.
class QueueTurn {
public:
    // No other thread starts an operation of this communicator meanwhile. A progress function
    // starts further up this stack waits until the turn is over.
    explicit QueueTurn(OperationQueue &queue) noexcept
        : queue_(queue), // another thread may have popped the last one, and still be in step()
          has_come_(queue.length_.load(std::memory_order_acquire) == 0 &&
                    !queue.running_.exchange(true, std::memory_order_acquire))
    {
    }
    ~QueueTurn()
    {
        if (has_come_) {
            queue_.running_.store(false, std::memory_order_release);
        }
    }
    QueueTurn(const QueueTurn &) = delete;
    QueueTurn &operator=(const QueueTurn &) = delete;

    // False: the call has to queue.
    [[nodiscard]] bool has_come() const noexcept { return has_come_; }

private:
    OperationQueue &queue_;
    bool has_come_;
};

} // namespace hetcoll
