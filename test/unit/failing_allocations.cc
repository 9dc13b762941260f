#include "test/unit/failing_allocations.h"

#include <cstdlib>
#include <new>

namespace hetcoll::test {
namespace {

struct Shortage {
    bool on = false;
    long left = 0;     // allocations until the first that fails
    long made = 0;     // those that were asked for
    bool over = false; // a handler has given up what it had
    std::size_t budget = 0, taken = 0;
    Blocks which = Blocks::kSmall;

    [[nodiscard]] bool counts(std::size_t bytes) const noexcept
    {
        return on && (which == Blocks::kLarge) == (bytes > (256u << 10));
    }
};
thread_local Shortage shortage;

bool fails(std::size_t bytes) noexcept
{
    const Shortage &now = shortage;
    if (!now.counts(bytes) || now.left > 0) {
        return false;
    }
    return !now.over || now.taken + bytes > now.budget;
}

} // namespace

FailingAllocations::FailingAllocations(long nth, std::size_t left, Blocks which) noexcept
    : nth_(nth)
{
    shortage = {.left = nth, .budget = left, .which = which};
}

FailingAllocations::~FailingAllocations() { shortage = {}; }
void FailingAllocations::turn(bool on) noexcept { shortage.on = on; }
long FailingAllocations::allocations() const noexcept { return shortage.made; }
std::size_t FailingAllocations::taken() const noexcept { return shortage.taken; }

} // namespace hetcoll::test

void *operator new(std::size_t bytes)
{
    using hetcoll::test::shortage;
    if (shortage.counts(bytes)) {
        ++shortage.made;
        --shortage.left;
    }
    for (;;) {
        if (!hetcoll::test::fails(bytes)) {
            if (void *const memory = std::malloc(bytes == 0 ? 1 : bytes)) {
                shortage.taken += shortage.over && shortage.counts(bytes) ? bytes : 0;
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

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
