#include "engine/process/frame_memory.h"

#include <new>
#include <utility>

namespace hetcoll {

FrameMemory::~FrameMemory()
{
    while (idle_ != nullptr) {
        delete std::exchange(idle_, idle_->next_);
    }
}

FrameMemory::Loan FrameMemory::borrow() noexcept
{
    Block *block = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (idle_ != nullptr) {
            block = std::exchange(idle_, idle_->next_);
        }
    }
    return Loan(block != nullptr ? block : new (std::nothrow) Block, GiveBack{this});
}

void FrameMemory::give_back(Block *block) noexcept
{
    const std::lock_guard lock(mutex_);
    block->next_ = idle_;
    idle_ = block;
}

} // namespace hetcoll
