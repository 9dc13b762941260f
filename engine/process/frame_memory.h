// Memory for the coroutine frames of calls that run, of all communicators of a process. A call
// borrows a block when it begins and gives it back at its end, so there are as many blocks as calls
// have run concurrently. They stay, so that the next calls allocate nothing. Thread safe.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>

namespace hetcoll {

class FrameMemory {
public:
    class Block {
    public:
        [[nodiscard]] std::span<std::byte> bytes() noexcept { return bytes_; }

    private:
        friend class FrameMemory;
        alignas(std::max_align_t) std::byte bytes_[4096];
        Block *next_ = nullptr; // of those that nobody has
    };
    struct GiveBack {
        FrameMemory *owner = nullptr;
        void operator()(Block *block) const noexcept { owner->give_back(block); }
    };
    using Loan = std::unique_ptr<Block, GiveBack>;

    FrameMemory() noexcept = default;
    ~FrameMemory(); // requires that nothing is borrowed
    FrameMemory(const FrameMemory &) = delete;
    FrameMemory &operator=(const FrameMemory &) = delete;

    // Null: there is no memory.
    [[nodiscard]] Loan borrow() noexcept;

private:
    void give_back(Block *block) noexcept;

    std::mutex mutex_;
    Block *idle_ = nullptr;
};

} // namespace hetcoll
