#include "test/unit/failing_allocations.h"

#include "test/unit/calling_object.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace hetcoll::test {
namespace {

struct Shortage {
    bool on = false;
    long left = 0;     // allocations until the first that fails
    long made = 0;     // those that were asked for
    bool over = false; // a handler has given up what it had
    std::size_t budget = 0, taken = 0, most_taken = 0;
    Blocks which = Blocks::kSmall;

    [[nodiscard]] bool counts(std::size_t bytes) const noexcept
    {
        return on && (which == Blocks::kAll || (which == Blocks::kLarge) == (bytes > (256u << 10)));
    }
};
thread_local Shortage shortage;
// The emulated driver's own memory does not run out: a driver reports that, and does not throw.
CallingObject driver("libcuda.so");

[[maybe_unused]] bool fails(std::size_t bytes) noexcept
{
    return shortage.left <= 0 && (!shortage.over || shortage.taken + bytes > shortage.budget);
}

[[maybe_unused]] void note_taken(void *memory) noexcept
{
    const std::size_t bytes = malloc_usable_size(memory);
    if (shortage.over && shortage.counts(bytes)) {
        shortage.taken += bytes;
        shortage.most_taken = std::max(shortage.most_taken, shortage.taken);
    }
}

[[maybe_unused]] void *allocate(std::size_t bytes, const void *caller)
{
    const bool counts = shortage.counts(bytes) && !driver.called(caller);
    if (counts) {
        ++shortage.made;
        --shortage.left;
    }
    for (;;) {
        if (!counts || !fails(bytes)) {
            if (void *const memory = std::malloc(bytes == 0 ? 1 : bytes)) {
                if (counts) {
                    note_taken(memory);
                }
                return memory;
            }
        }
        const std::new_handler handler = std::get_new_handler();
        if (handler == nullptr) {
            throw std::bad_alloc();
        }
        handler(); // or throws
        shortage.over = true;
    }
}

[[maybe_unused]] void give_back(void *memory, const void *caller) noexcept
{
    if (shortage.over && memory != nullptr && !driver.called(caller)) {
        const std::size_t bytes = malloc_usable_size(memory);
        shortage.taken -= shortage.counts(bytes) ? std::min(shortage.taken, bytes) : 0;
    }
    std::free(memory);
}

} // namespace

FailingAllocations::FailingAllocations(long nth, std::size_t left, Blocks which) noexcept
    : nth_(nth)
{
    driver.find();
    shortage = {.left = nth, .budget = left, .which = which};
}

FailingAllocations::~FailingAllocations() { shortage = {}; }
void FailingAllocations::turn(bool on) noexcept { shortage.on = on; }
long FailingAllocations::allocations() const noexcept { return shortage.made; }
std::size_t FailingAllocations::most_taken() const noexcept { return shortage.most_taken; }

} // namespace hetcoll::test

#ifndef __SANITIZE_ADDRESS__ // which has operators of its own
void *operator new(std::size_t bytes)
{
    return hetcoll::test::allocate(bytes, __builtin_return_address(0));
}

void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept
{
    try {
        return hetcoll::test::allocate(bytes, __builtin_return_address(0));
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void operator delete(void *memory) noexcept
{
    hetcoll::test::give_back(memory, __builtin_return_address(0));
}
void operator delete(void *memory, std::size_t) noexcept
{
    hetcoll::test::give_back(memory, __builtin_return_address(0));
}
#endif
