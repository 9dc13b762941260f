// Calls that are queued in the order of a CUDA stream. Until such a call is complete its stream
// waits for the host, so a driver call that waits for the device waits for it too, and whoever has
// to complete it must not be in such a call, nor need a lock that is held in one. So nothing is
// made, mapped or freed while one is pending: what is to be freed is kept until none is. Thread
// safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace hetcoll {

class QueuedCalls {
public:
    // Memory to free when no call is pending.
    class Kept {
    public:
        virtual ~Kept() = default; // frees it
    };

    // The process's: a driver call waits for the streams of all who use it here.
    [[nodiscard]] static QueuedCalls &of_process() noexcept;

    QueuedCalls() = default;
    QueuedCalls(const QueuedCalls &) = delete;
    QueuedCalls &operator=(const QueuedCalls &) = delete;

    // A stream may have calls from now on, or has none any more.
    void open() noexcept { streams_.fetch_add(1, std::memory_order_acq_rel); }
    void close() noexcept { streams_.fetch_sub(1, std::memory_order_acq_rel); }
    [[nodiscard]] bool may_begin() const noexcept
    {
        return streams_.load(std::memory_order_acquire) > 0;
    }

    // One more is pending. Waits for driver calls of other threads that may wait for the device.
    void begin();
    // One less; frees what was kept if it was the last.
    void end();
    [[nodiscard]] bool any() const noexcept { return pending_.load(std::memory_order_acquire) > 0; }

    // Around driver calls that may wait for the device: no call becomes pending meanwhile.
    class Waiting {
    public:
        // `calls` may be null.
        explicit Waiting(QueuedCalls *calls);
        // False: some call is pending, so make none.
        [[nodiscard]] bool may() const noexcept { return may_; }

    private:
        std::unique_lock<std::recursive_mutex> lock_;
        bool may_ = true;
    };

    // Requires that some call is pending, or was a moment ago. Null: there was no memory to keep
    // it, and it is lost.
    void keep(std::unique_ptr<Kept> kept) noexcept;

private:
    void free_kept();

    std::atomic<int> streams_{0}, pending_{0};
    std::recursive_mutex mutex_; // while pending_ grows, and of the rest
    std::vector<std::unique_ptr<Kept>> kept_;
};

} // namespace hetcoll
