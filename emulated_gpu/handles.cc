#include "emulated_gpu/handles.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/report.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>

namespace hetcoll::emulated_gpu {
namespace {

constexpr std::size_t kHandleBytes = 64, kMostHandles = std::size_t{1} << 24;

char *handle_space()
{
    static char *const start =
        static_cast<char *>(mmap(nullptr, kHandleBytes * kMostHandles, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    return start;
}

constinit std::atomic<std::size_t> handles_made{0};

} // namespace

void *fresh_handle()
{
    const std::size_t number = handles_made.fetch_add(1) % kMostHandles;
    return handle_space() + number * kHandleBytes;
}

void abort_on_dead(const char *what, const void *handle)
{
    say("%s was given %s %p, which is destroyed: undefined behaviour, with a GPU it crashes or "
        "uses another %s that has the handle by now",
        current_call(), what, handle, what);
    std::abort();
}

} // namespace hetcoll::emulated_gpu
