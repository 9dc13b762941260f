#include "engine/call/refusals.h"

namespace hetcoll {

void Refusals::add(unsigned short number, int tag) noexcept
{
    const std::lock_guard lock(mutex_);
    if (operation_ && !operation_->is_complete()) {
        more_ = true;
        last_ = number;
    } else {
        start(number, tag);
    }
}

bool Refusals::step() noexcept
{
    queue_.step();
    const std::lock_guard lock(mutex_);
    if (!operation_) {
        return true;
    }
    if (!operation_->is_complete()) {
        return false;
    }
    if (more_) {
        start(last_, call_.tag);
        return false;
    }
    operation_.reset();
    return true;
}

void Refusals::start(unsigned short number, int tag) noexcept
{
    more_ = false;
    call_ = {};
    call_.collective = HETCOLL_REFUSED;
    call_.kind = -1;
    call_.number = number;
    call_.tag = tag;
    operation_.emplace(engine_, call_);
    queue_.push(*operation_);
}

} // namespace hetcoll
