#include "engine/call/refusals.h"

#include "engine/call/report.h"

namespace hetcoll {

void Refusals::add(std::uint32_t number, hetcoll_why_refused why, int tag) noexcept
{
    const std::lock_guard lock(mutex_);
    if (runs_ && !is_complete()) {
        more_ = true;
        last_ = number;
        last_why_ = why;
    } else {
        start(number, why, tag);
    }
}

bool Refusals::are_over()
{
    queue_.step();
    const std::lock_guard lock(mutex_);
    if (!runs_) {
        return true;
    }
    if (!is_complete()) {
        return false;
    }
    if (more_) {
        start(last_, last_why_, tag_);
        return false;
    }
    runs_ = false;
    return true;
}

void Refusals::start(std::uint32_t number, hetcoll_why_refused why, int tag) noexcept
{
    more_ = false;
    number_ = number;
    why_ = why;
    tag_ = tag;
    runs_ = true;
    set_incomplete();
    queue_.push(*this);
}

hetcoll_call Refusals::call() const noexcept
{
    hetcoll_call refused{};
    refused.collective = HETCOLL_REFUSED;
    refused.root = why_;
    refused.kind = -1;
    refused.number = number_;
    refused.tag = tag_;
    return refused;
}

bool Refusals::step()
{
    const UsesReserve uses_reserve;
    Membership &membership = comm_.membership();
    if (const int code = membership.broken(); code != 0) {
        if (!comm_.departure().leave(code)) {
            return false;
        }
        end(code);
        return true;
    }
    if (!refusal_) {
        if (comm_.same_calls().has_missed(call())) {
            end(HETCOLL_ERROR_COLLECTIVE);
            return true;
        }
        comm_.begin_call(call());
        refusal_.emplace(comm_, why_, tag_);
    }
    if (const auto result = refusal_->step()) {
        end(*result);
        return true;
    }
    if (comm_.watch().is_due(0)) {
        comm_.is_ready() ? comm_.watch().say_meeting(comm_.meeting())
                         : comm_.watch().say_first_call();
    }
    return false;
}

void Refusals::end(int result) noexcept
{
    refusal_.reset();
    CallReport report(comm_);
    report.begin(call());
    report.end(result, Flags{});
    comm_.freed().close();
}

// Nobody knows what this rank has told others.
void Refusals::fail_without_memory() noexcept
{
    comm_.abandon_messages();
    comm_.membership().break_off(HETCOLL_ERROR_NO_MEMORY);
    end(HETCOLL_ERROR_NO_MEMORY);
}

} // namespace hetcoll
