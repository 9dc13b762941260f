#include "engine/call/operation_queue.h"

#include <new>

namespace hetcoll {

void OperationQueue::push(Queued &operation) noexcept
{
    const std::lock_guard lock(mutex_);
    operation.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &operation;
    last_ = &operation;
    length_.fetch_add(1, std::memory_order_release);
}

Queued *OperationQueue::first() noexcept
{
    const std::lock_guard lock(mutex_);
    return first_;
}

bool OperationQueue::pop() noexcept
{
    const std::lock_guard lock(mutex_);
    first_ = first_->next_;
    return length_.fetch_sub(1, std::memory_order_release) == 1;
}

void OperationQueue::step()
{
    if (length_.load(std::memory_order_acquire) == 0 ||
        running_.exchange(true, std::memory_order_acquire)) {
        return;
    }
    while (Queued *operation = first()) {
        bool done = true;
        try {
            done = operation->step();
        } catch (const std::bad_alloc &) {
            operation->fail_without_memory();
        }
        if (!done) {
            break;
        }
        // Once it is told that it is complete its owner may destroy it, or run another one outside
        // the queue: before that we must be gone.
        const bool was_last = pop();
        if (was_last) {
            running_.store(false, std::memory_order_release);
        }
        operation->set_complete();
        if (was_last) {
            return;
        }
    }
    running_.store(false, std::memory_order_release);
}

} // namespace hetcoll
