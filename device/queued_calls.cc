#include "device/queued_calls.h"

#include <new>
#include <utility>

namespace hetcoll {

void QueuedCalls::begin()
{
    const std::lock_guard lock(mutex_);
    pending_.fetch_add(1, std::memory_order_acq_rel);
}

void QueuedCalls::end()
{
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        free_kept();
    }
}

// Another thread in begin() waits until all is freed.
void QueuedCalls::free_kept()
{
    const std::lock_guard lock(mutex_);
    if (!any()) {
        const auto freed = std::exchange(kept_, {});
    }
}

void QueuedCalls::keep(std::unique_ptr<Kept> kept) noexcept
{
    if (kept == nullptr) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        try {
            kept_.push_back(std::move(kept));
        } catch (const std::bad_alloc &) {
            static_cast<void>(kept.release()); // lost, rather than freed now
        }
    }
    if (!any()) { // the last one has ended meanwhile
        free_kept();
    }
}

QueuedCalls::Waiting::Waiting(QueuedCalls *calls)
{
    if (calls != nullptr && calls->streams_.load(std::memory_order_acquire) > 0) {
        lock_ = std::unique_lock(calls->mutex_);
        may_ = !calls->any();
        if (!may_) {
            lock_.unlock();
        }
    }
}

} // namespace hetcoll
