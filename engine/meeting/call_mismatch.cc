#include "engine/meeting/call_mismatch.h"

namespace hetcoll {
namespace {

// Returns the call that most ranks of the node make, and another one.
CallMismatch::Calls calls_on_node(const NodeGroup &group, unsigned turn) noexcept
{
    const auto call_of = [&](int rank) {
        const ControlPage::Slot &slot = group.slot(rank);
        return CallMismatch::Call{group.local_ranks()[rank], slot.call[turn],
                                  slot.call_number[turn]};
    };
    const int ranks = group.local_size();
    int most = 0, usual = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        int alike = 0;
        for (int other = 0; other < ranks; ++other) {
            alike += call_of(other).call == call_of(rank).call ? 1 : 0;
        }
        if (alike > most) {
            most = alike;
            usual = rank;
        }
    }
    int odd = 0;
    while (odd < ranks - 1 && call_of(odd).call == call_of(usual).call) {
        ++odd;
    }
    return {call_of(usual), call_of(odd), ranks - most - 1};
}

} // namespace

void CallMismatch::compare_node(NodeGroup &group, unsigned turn) noexcept
{
    newest_ = group.slot(0).call[turn].number();
    for (int rank = 1; rank < group.local_size(); ++rank) {
        const CallSignature &call = group.slot(rank).call[turn];
        on_node_ |= group.own_call().differences(call, group.slot(0).call[turn]);
        newest_ = later(newest_, call.number());
    }
    differences_ = on_node_;
}

bool CallMismatch::find_elsewhere(NodeGroup &group, int first) noexcept
{
    if (!group.own_call().compares_all()) {
        return false;
    }
    const CallSignature &own = group.own_call().call();
    for (int rank = first; rank < group.local_size(); ++rank) {
        const auto other = group.handed_on().of(rank, own.number());
        if (other && *other != own) {
            elsewhere_ = {group.local_ranks()[rank], *other, 0};
            learn(differences_of(*other, own), own.number());
            return true;
        }
    }
    return false;
}

std::optional<CallMismatch::Calls> CallMismatch::calls(NodeGroup &group, unsigned turn,
                                                       const Exchange &exchange) const noexcept
{
    const Call own{group.all().rank, group.own_call().call(), group.own_call().count()};
    if (elsewhere_.rank >= 0) {
        return Calls{own, elsewhere_, 0, true};
    }
    const bool speaks = !group.uses_pages() || group.is_leader();
    if (differences_ == Differences::kNone || !speaks) {
        return std::nullopt;
    }
    if (on_node_ != Differences::kNone) {
        return calls_on_node(group, turn);
    }
    const Exchange::Other &other = exchange.other();
    if (other.rank < 0) {
        return std::nullopt;
    }
    const int rank = group.uses_pages() ? group.leader_ranks()[other.rank] : other.rank;
    return Calls{own, {rank, other.call, 0}, 0};
}

} // namespace hetcoll
