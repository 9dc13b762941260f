#include "engine/process/memory_reserve.h"

#include "base/library.h"
#include "base/spare_memory.h"

#include <atomic>
#include <mutex>
#include <new>

namespace hetcoll {
namespace {

// As operator new's handler is: one for all.
std::atomic<void *> reserve{nullptr};
std::atomic<std::new_handler> before_us{nullptr};
std::mutex keeping; // of the next one
int keepers = 0;
thread_local int users = 0;

// operator new tries again when this returns.
void give_up_reserve()
{
    if (users > 0 && !allocates_spare_memory && MemoryReserve::give_up()) {
        return;
    }
    if (const std::new_handler before = before_us) {
        before();
        return;
    }
    throw std::bad_alloc();
}

} // namespace

MemoryReserve::MemoryReserve() noexcept
{
    const std::lock_guard lock(keeping);
    if (keepers++ == 0 && std::get_new_handler() != give_up_reserve) {
        before_us = std::get_new_handler();
        std::set_new_handler(give_up_reserve);
    }
    static_cast<void>(fill()); // else the first call says so
}

MemoryReserve::~MemoryReserve()
{
    const std::lock_guard lock(keeping);
    if (--keepers > 0) {
        return;
    }
    if (std::get_new_handler() == give_up_reserve) {
        std::set_new_handler(before_us);
    } else {
        // Somebody else has set a handler since, who may still call ours: our code stays.
        keep_loaded(reinterpret_cast<void *>(&give_up_reserve));
    }
    ::operator delete(reserve.exchange(nullptr));
    memory_is_short.store(false, std::memory_order_relaxed);
}

bool MemoryReserve::fill() noexcept
{
    if (reserve.load(std::memory_order_relaxed) != nullptr) {
        return true;
    }
    void *memory = ::operator new(kReserveBytes, std::nothrow);
    if (memory == nullptr) {
        return false;
    }
    void *none = nullptr;
    if (!reserve.compare_exchange_strong(none, memory)) {
        ::operator delete(memory); // another thread was faster
    }
    memory_is_short.store(false, std::memory_order_relaxed);
    return true;
}

bool MemoryReserve::give_up() noexcept
{
    void *const memory = reserve.exchange(nullptr);
    if (memory != nullptr) {
        memory_is_short.store(true, std::memory_order_relaxed);
    }
    ::operator delete(memory);
    return memory != nullptr;
}

UsesReserve::UsesReserve() noexcept { ++users; }
UsesReserve::~UsesReserve() { --users; }

} // namespace hetcoll
