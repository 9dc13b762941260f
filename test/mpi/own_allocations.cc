#include "test/mpi/own_allocations.h"

#include "test/unit/calling_object.h"

#include <malloc.h>

#include <atomic>

extern "C" {
void *__libc_malloc(std::size_t bytes);
void *__libc_calloc(std::size_t count, std::size_t bytes);
void *__libc_realloc(void *pointer, std::size_t bytes);
void *__libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void *pointer);
}

namespace hetcoll::test {
namespace {

// Threads of the emulated GPU allocate and free, too.
std::atomic<OwnAllocation> watcher{nullptr};
std::atomic<std::size_t> largest{0};
thread_local bool asks = false; // unwinding may allocate

CallingObject component("hetcoll_component");

[[maybe_unused]] bool has_memory(const void *caller)
{
    const OwnAllocation watches = watcher;
    if (watches == nullptr || asks) {
        return true;
    }
    asks = true;
    const bool has = !component.called(caller) || watches();
    asks = false;
    return has;
}

[[maybe_unused]] void note_freed(std::size_t bytes)
{
    std::size_t most = largest;
    while (most < bytes && !largest.compare_exchange_weak(most, bytes)) {
    }
}

} // namespace

void watch_own_allocations(OwnAllocation its_watcher)
{
    component.find();
    watcher = its_watcher;
    largest = 0;
}

std::size_t largest_freed() { return largest; }

} // namespace hetcoll::test

#ifndef __SANITIZE_ADDRESS__ // AddressSanitizer has its own
#pragma GCC visibility push(default)
extern "C" {
using hetcoll::test::has_memory;
void *malloc(std::size_t bytes)
{
    return has_memory(__builtin_return_address(0)) ? __libc_malloc(bytes) : nullptr;
}
void *calloc(std::size_t count, std::size_t bytes)
{
    return has_memory(__builtin_return_address(0)) ? __libc_calloc(count, bytes) : nullptr;
}
void *realloc(void *pointer, std::size_t bytes)
{
    return has_memory(__builtin_return_address(0)) ? __libc_realloc(pointer, bytes) : nullptr;
}
int posix_memalign(void **to, std::size_t alignment, std::size_t bytes)
{
    *to = has_memory(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : nullptr;
    return *to != nullptr ? 0 : 12; // ENOMEM
}
void *aligned_alloc(std::size_t alignment, std::size_t bytes)
{
    return has_memory(__builtin_return_address(0)) ? __libc_memalign(alignment, bytes) : nullptr;
}
void free(void *pointer)
{
    if (hetcoll::test::watcher != nullptr && pointer != nullptr) {
        hetcoll::test::note_freed(malloc_usable_size(pointer));
    }
    __libc_free(pointer);
}
}
#pragma GCC visibility pop
#endif
