// Host memory that runs out: operator new of this program, which asks std::get_new_handler() as the
// library's own does. For the thread that makes one of these, while it lives and is on.
#pragma once

#include <cstddef>

namespace hetcoll::test {

// Allocations of up to 256 KiB fail: the emulated driver's memory, of devices too, comes in larger
// ones.
enum class Blocks { kSmall, kLarge, kAll };

class FailingAllocations {
public:
    // From the nth allocation on (1: the next) there is no memory, until a handler gives up what
    // it has: from then on there is that much.
    explicit FailingAllocations(long nth, std::size_t left = 0,
                                Blocks which = Blocks::kSmall) noexcept;
    ~FailingAllocations();
    FailingAllocations(const FailingAllocations &) = delete;
    FailingAllocations &operator=(const FailingAllocations &) = delete;

    // Off at first.
    void turn(bool on) noexcept;
    [[nodiscard]] long allocations() const noexcept; // while it was on
    [[nodiscard]] bool have_failed() const noexcept { return allocations() >= nth_; }
    // Most bytes that were allocated and not freed at a time, once there was memory again.
    [[nodiscard]] std::size_t most_taken() const noexcept;

private:
    const long nth_;
};

} // namespace hetcoll::test
