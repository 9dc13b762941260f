#include "device/queued_calls.h"

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace hetcoll {

// Never destroyed: a shared object that can be unloaded has no exit handlers, and nothing is kept
// where no stream has calls.
QueuedCalls &QueuedCalls::of_process() noexcept
{
    alignas(QueuedCalls) static std::array<std::byte, sizeof(QueuedCalls)> place;
    static QueuedCalls *const calls = new (place.data()) QueuedCalls;
    return *calls;
}

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
    if (calls != nullptr && calls->may_begin()) {
        lock_ = std::unique_lock(calls->mutex_);
        may_ = !calls->any();
        if (!may_) {
            lock_.unlock();
        }
    }
}

} // namespace hetcoll
