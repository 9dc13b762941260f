// The calls that a node's ranks hand on to Open MPI, as they tell each other in the control page.
#pragma once

#include "engine/meeting/call_signature.h"
#include "engine/meeting/control_page.h"
#include "engine/meeting/node_ranks.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace hetcoll {

class HandedOn {
public:
    // All outlive it: the ranks, their page, and the number of the last meeting.
    HandedOn(const NodeRanks &ranks, const ControlPage &page,
             const std::uint32_t &meetings) noexcept
        : ranks_(ranks), page_(page), meetings_(meetings)
    {
    }

    // Whether some rank sees which calls this one hands on.
    [[nodiscard]] bool tells() const noexcept { return tells_; }
    // Requires a page with other ranks.
    void start_telling() noexcept;
    void tell_no_more() noexcept { tells_ = false; }
    // A call goes on to Open MPI: the ranks of this node see it from now on. False if one of the
    // two next to this one may have begun another call in its place. If two ranks hand on
    // different calls one sees the other, and of a node's ranks two that are neighbours differ, if
    // any do.
    [[nodiscard]] [[gnu::always_inline]] bool tell(CallSignature call) noexcept
    {
        if (!tells_) {
            return false;
        }
        const std::size_t place = call.number() % ControlPage::kHandedOn;
        ControlPage::Slot::HandedOn &entry = own_->handed_on[place];
        const ControlPage::Slot *const before = before_;
        entry.rest.store(0, std::memory_order_relaxed);
        entry.what.store(call.what, std::memory_order_release);
        entry.rest.store(call.rest, std::memory_order_seq_cst);
        return !may_differ(*before, place, call) &&
               (before == behind_ || !may_differ(*behind_, place, call));
    }
    // The call that a rank of this node has handed on as its call of this number, and as its last
    // one; nothing: that is not known.
    [[nodiscard]] std::optional<CallSignature> of(int local_rank,
                                                  std::uint32_t number) const noexcept;
    [[nodiscard]] std::optional<CallSignature> last_of(int local_rank) const noexcept;
    // Where a rank of this node is, as seen from a call that this rank has handed on and is in.
    struct Place {
        bool has_come;                     // to the call, or to a later one
        std::optional<CallSignature> call; // another one that it has begun in its place
    };
    [[nodiscard]] Place place_of(int local_rank, const CallSignature &own) const noexcept;
    // A rank next to this one has begun another call in place of this one, which this rank has
    // handed on. Nothing in a correct program, and where nobody looks.
    struct Begun {
        int rank; // in the communicator
        CallSignature call;
    };
    [[nodiscard]] std::optional<Begun> begun_instead(const CallSignature &call) const noexcept;

private:
    // It waits in a meeting for this rank, or has handed on a call of this number that differs. One
    // that has handed on the same is looked at no further, so most calls end there.
    [[nodiscard]] bool may_differ(const ControlPage::Slot &slot, std::size_t place,
                                  CallSignature call) const noexcept
    {
        const ControlPage::Slot::HandedOn &entry = slot.handed_on[place];
        const std::uint64_t rest = entry.rest.load(std::memory_order_seq_cst);
        if (rest == call.rest) [[likely]] {
            return entry.what.load(std::memory_order_acquire) != call.what;
        }
        return CallSignature{0, rest}.number() == call.number() ||
               slot.arrived.load(std::memory_order_acquire) == meetings_ + 1;
    }

    const NodeRanks &ranks_;
    const ControlPage &page_;
    const std::uint32_t &meetings_;
    // Where this rank tells, and whom it looks at then. Null until it tells.
    ControlPage::Slot *own_ = nullptr;
    const ControlPage::Slot *before_ = nullptr, *behind_ = nullptr;
    bool tells_ = false;
};

} // namespace hetcoll
