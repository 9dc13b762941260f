// Events of memory being allocated and released anywhere in the process, from UCX's libucm. It is
// opened at run time through libucs, because it does not load without that. A libucm that is there
// need not see CUDA's calls (Debian's does not): the caller proves it with a call of its own.
#pragma once

#include "base/status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <pthread.h>

namespace hetcoll {

class MemoryEvents {
public:
    // Called from within cuMemFree(), munmap() and the like, on any thread, before the memory goes
    // (or after it has come): must not allocate.
    using Changed = void (*)(void *owner, std::uintptr_t first, std::size_t bytes);

    // A null `library` is the program itself.
    static Result<std::unique_ptr<MemoryEvents>> subscribe(const char *library, void *owner,
                                                           Changed changed);
    ~MemoryEvents(); // no event is under way or comes after this
    MemoryEvents(const MemoryEvents &) = delete;
    MemoryEvents &operator=(const MemoryEvents &) = delete;

    // Watches this thread for the events of one allocation: begin, cuMemAlloc, cuMemFree, end. True
    // if both events came with that address. One thread at a time.
    void begin_proof() noexcept;
    [[nodiscard]] bool end_proof(std::uintptr_t address) noexcept;

private:
    using SetHandler = int (*)(int events, int priority, void (*handler)(int, void *, void *),
                               void *argument);
    using UnsetHandler = void (*)(int events, void (*handler)(int, void *, void *), void *argument);

    MemoryEvents(void *owner, Changed changed) noexcept : owner_(owner), changed_(changed) {}
    static void on_event(int type, void *event, void *self) noexcept;

    void *owner_;
    Changed changed_;
    UnsetHandler unset_ = nullptr; // set once the handler is installed
    std::atomic<bool> proving_{false};
    std::atomic<pthread_t> prover_{};
    std::atomic<std::uintptr_t> allocated_{0}, released_{0};
};

} // namespace hetcoll
