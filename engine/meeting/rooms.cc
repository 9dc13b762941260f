#include "engine/meeting/rooms.h"

#include "engine/meeting/flags.h"

#include <new>
#include <utility>

namespace hetcoll {

void Rooms::offer() noexcept
{
    if (ranks_.local_size() == 1 || page_.rooms().data() != nullptr) {
        return;
    }
    loan_ = {}; // of a meeting in which the ranks called differently
    const int ranks = ranks_.local_size();
    const bool pays = problem_.can_afford(ControlPage::room_bytes(ranks), ranks, loan_);
    own_slot().rooms.reserved = pays ? 0 : 1; // the leader says so
    if (!pays || !ranks_.is_leader()) {
        return;
    }
    try {
        make();
    } catch (const std::bad_alloc &) {
        problem_.note(Status::out_of_memory());
    }
}

void Rooms::make()
{
    auto made = SharedPage::create(ranks_.process(ranks_.all().rank),
                                   ControlPage::room_bytes(ranks_.local_size()));
    if (!made.ok()) {
        problem_.note(made.take_status());
        return;
    }
    own_slot().rooms = made->ticket();
    page_.rooms() = std::move(*made);
}

Flags Rooms::attach() noexcept
{
    if (ranks_.local_size() == 1) {
        return {};
    }
    const SharedPageTicket &ticket = page_.slot(0).rooms;
    if (ticket.bytes == 0) {
        return kNoPage; // the leader says why
    }
    if (ranks_.is_leader()) {
        return {};
    }
    if (problem_.is_short()) {
        return kNoPage;
    }
    try {
        auto attached = SharedPage::attach(ticket);
        if (attached.ok()) {
            page_.rooms() = std::move(*attached);
            return {};
        }
        problem_.note(attached.take_status());
    } catch (const std::bad_alloc &) {
        problem_.note(Status::out_of_memory());
    }
    return kNoPage;
}

void Rooms::settle(Flags all) noexcept
{
    state_ = any(all, kNoPage) ? State::kNone : State::kMade;
    for (int rank = 0; ranks_.is_leader() && ranks_.local_size() > 1 && rank < ranks_.local_size();
         ++rank) {
        problem_.note_shortage(problem_.has_shortage() || page_.slot(rank).rooms.reserved != 0);
    }
    if (state_ == State::kMade) {
        page_.rooms().seal();
    } else {
        page_.rooms() = {};
        loan_ = {};
    }
}

} // namespace hetcoll
