#include "engine/meeting/meeting.h"

#include "engine/meeting/flags.h"

#include <algorithm>
#include <cstring>

namespace hetcoll {

std::byte *Meeting::payload(const NodeGroup &group, std::size_t bytes,
                            std::byte *otherwise) noexcept
{
    return group.uses_pages() && group.local_size() > 1 && group.has_room(bytes)
               ? group.payload(group.local_rank(), (group.meetings() + 1) % 2, bytes)
               : otherwise;
}

// Where a leader has the part of its node for the others; the flags go behind it. No message of
// a round that is no whole one is longer than a piece.
std::byte *Meeting::leader_part() noexcept
{
    constexpr std::size_t kBehindTheirs = 2 * ControlPage::kSlotPayloadBytes;
    switch (round_) {
    case Round::kOffer:
    case Round::kAttach: return messages_->flags_alone();
    case Round::kPiece: return messages_->theirs + kBehindTheirs;
    case Round::kWhole: break;
    }
    return group_->local_size() == 1 ? mine_ : messages_->mine;
}

// Small calls feel every instruction: what has one caller on their way is inline.
[[gnu::always_inline]] inline void Meeting::start_round(std::size_t bytes, std::size_t count,
                                                        Flags flags) noexcept
{
    NodeGroup &group = *group_;
    number_ = group.next_meeting();
    seen_ = 0;
    bytes_ = bytes;
    count_ = count;
    flags_ = flags;
    mismatch_.forget();
    if (group.page().exists()) {
        ControlPage::Slot &own = group.own_slot();
        own.said[number_ % 2] = flags;
        own.call[number_ % 2] = group.own_call().call();
        own.call_number[number_ % 2] = group.own_call().count();
        own.arrived.store(number_, std::memory_order_release);
    }
    if (!group.uses_pages()) {
        part_ = Part::kExchange;
        sum_ = mine_;
        start_exchange(group.all(), mine_);
        return;
    }
    if (group.local_size() == 1) { // alone on its node, so its leader
        part_ = Part::kLeaders;
        sum_ = leader_part();
        start_exchange(group.leaders(), leader_part());
        return;
    }
    part_ = Part::kArrive;
}

void Meeting::start(NodeGroup &group, Messages &messages, std::byte *mine, int tag,
                    std::size_t bytes, std::size_t count, const HostReduction &reduction,
                    Flags flags) noexcept
{
    group_ = &group;
    messages_ = &messages;
    mine_ = mine;
    tag_ = tag;
    reduction_ = reduction;
    if (!group.uses_pages() || group.has_room(bytes)) [[likely]] {
        round_ = Round::kWhole;
        start_round(bytes, count, flags);
        return;
    }
    // Not inline, so that it takes no register of the usual way.
    const auto start_without_room = [ =, this ]() __attribute__((noinline, cold))
    {
        vector_.bytes = bytes;
        vector_.count = count;
        vector_.done = 0;
        vector_.flags = flags;
        if (!group_->rooms().may_be_made()) {
            start_piece();
            return;
        }
        round_ = Round::kOffer;
        group_->rooms().offer();
        start_round(0, 0, flags);
    };
    start_without_room();
}

// Pieces of whole elements, which a slot has room for.
void Meeting::start_piece() noexcept
{
    round_ = Round::kPiece;
    const std::size_t element = (vector_.bytes + vector_.count - 1) / vector_.count;
    const std::size_t count = ControlPage::kSlotPayloadBytes / element;
    const std::size_t bytes = std::min(count * element, vector_.bytes - vector_.done);
    std::byte *const to =
        group_->local_size() == 1 ? leader_part() : payload(*group_, bytes, nullptr);
    std::memcpy(to, mine_ + vector_.done, bytes);
    start_round(bytes, (bytes + element - 1) / element, vector_.flags);
}

// Requires that the last one was no whole one. False: the meeting is over.
bool Meeting::next_round() noexcept
{
    if (mismatch_.differences() != Differences::kNone) {
        return false;
    }
    if (any(vector_.flags, kMemoryFreed)) { // goes along, to the last round
        ControlPage::Slot &own = group_->own_slot();
        own.freed[(number_ + 1) % 2] = own.freed[number_ % 2];
    }
    if (round_ == Round::kOffer) {
        round_ = Round::kAttach;
        start_round(0, 0, group_->rooms().attach());
        return true;
    }
    if (round_ == Round::kAttach) {
        group_->rooms().settle(flags_);
        if (!group_->has_room(vector_.bytes)) {
            start_piece();
            return true;
        }
        round_ = Round::kWhole;
        std::byte *const to = payload(*group_, vector_.bytes, mine_);
        if (to != mine_) {
            std::memcpy(to, mine_, vector_.bytes);
        }
        start_round(vector_.bytes, vector_.count, vector_.flags);
        return true;
    }
    std::memcpy(mine_ + vector_.done, sum_, bytes_);
    vector_.done += bytes_;
    sum_ = mine_;
    if (vector_.done == vector_.bytes) {
        return false;
    }
    start_piece();
    return true;
}

void Meeting::start_exchange(const hetcoll_p2p &among, std::byte *mine) noexcept
{
    messages_->new_exchange().start(
        among, tag_, mine, messages_->theirs, bytes_, count_,
        bytes_ != 0 ? reduction_.reduce : nullptr, flags_,
        {.call = group_->own_call().call(),
         .most_bytes = group_->own_call().compares_all() ? ControlPage::kPayloadBytes : 0,
         .known = mismatch_.on_node(),
         .newest = mismatch_.on_node() != Differences::kNone ? mismatch_.newest()
                                                             : group_->own_call().call().number()});
}

void Meeting::start(NodeGroup &group, Messages &messages, int tag,
                    std::span<const std::uint64_t> numbers, ReduceOp op, Flags flags) noexcept
{
    std::byte *const mine = payload(group, numbers.size_bytes(), messages.mine);
    std::memcpy(mine, numbers.data(), numbers.size_bytes());
    start(group, messages, mine, tag, numbers.size_bytes(), numbers.size(),
          host_reduce(op, ElementKind::kUint64), flags);
}

void Meeting::sum(std::span<std::uint64_t> numbers) const noexcept
{
    std::memcpy(numbers.data(), sum_, numbers.size_bytes());
}

bool Meeting::all_arrived() noexcept
{
    for (; seen_ < group_->local_size(); ++seen_) {
        // A rank may be one meeting ahead; what it said here is still as it was.
        const std::uint32_t arrived = group_->slot(seen_).arrived.load(std::memory_order_acquire);
        if (arrived != number_ && arrived != number_ + 1) {
            return false;
        }
    }
    return true;
}

[[gnu::always_inline]] inline Progress Meeting::step_round() noexcept
{
    if (part_ == Part::kArrive) {
        if (all_arrived()) {
            sum_node();
        } else if (--polls_left_ != 0 || !find_elsewhere()) {
            return Progress::kPending;
        }
    }
    if (part_ == Part::kExchange || part_ == Part::kLeaders) {
        Exchange &exchange = messages_->exchange();
        const Progress progress = exchange.step();
        if (progress != Progress::kDone) {
            return progress;
        }
        mismatch_.learn(exchange.differences(), exchange.newest());
        flags_ =
            exchange.flags() | flags_if(exchange.differences() != Differences::kNone, kCallsDiffer);
        if (group_->local_size() > 1 && group_->uses_pages()) {
            ControlPage::Slot &own = group_->own_slot();
            if (bytes_ != 0) {
                std::byte *const sum = group_->sum(0, number_ % 2, bytes_);
                std::memcpy(sum, leader_part(), bytes_);
                sum_ = sum;
            }
            own.result[number_ % 2] = flags_;
            own.differences[number_ % 2] = mismatch_.differences();
            own.newest[number_ % 2] = mismatch_.newest();
            own.released.store(number_, std::memory_order_release);
        }
        part_ = Part::kDone;
    }
    if (part_ == Part::kRelease) {
        const ControlPage::Slot &leader = group_->slot(0);
        if (leader.released.load(std::memory_order_acquire) != number_) {
            return Progress::kPending;
        }
        flags_ = leader.result[number_ % 2];
        mismatch_.learn(leader.differences[number_ % 2], leader.newest[number_ % 2]);
        part_ = Part::kDone;
    }
    return Progress::kDone;
}

Progress Meeting::step() noexcept
{
    for (;;) {
        const Progress progress = step_round();
        if (progress != Progress::kDone || round_ == Round::kWhole || !next_round()) {
            return progress;
        }
    }
}

// A rank that has handed this call on to Open MPI, as another one, does not come: every rank that
// waits here finds that by itself, and leaves the meeting as if it had not come. Then the next call
// meets.
bool Meeting::find_elsewhere() noexcept
{
    polls_left_ = kPollsPerLook;
    if (!mismatch_.find_elsewhere(*group_, seen_)) {
        return false;
    }
    flags_ |= kCallsDiffer;
    part_ = Part::kDone;
    group_->withdraw();
    return true;
}

// Nobody is at a later meeting before all have come to this one.
std::optional<Flags> Meeting::flags_without(int local_rank) const noexcept
{
    Flags flags{};
    for (int rank = 0; rank < group_->local_size(); ++rank) {
        const ControlPage::Slot &slot = group_->slot(rank);
        if (rank == local_rank) {
            continue;
        }
        if (slot.arrived.load(std::memory_order_acquire) != number_) {
            return std::nullopt;
        }
        flags |= slot.said[number_ % 2];
        flags |=
            flags_if(group_->own_call().differences(
                         slot.call[number_ % 2], group_->own_call().call()) != Differences::kNone,
                     kCallsDiffer);
    }
    return flags;
}

// Everybody on the node is here. On a single node every rank sums for itself, in the order of the
// ranks, so that all get the same bits. Else the leader does, for the exchange with the others.
void Meeting::sum_node() noexcept
{
    const bool alone = group_->nodes() == 1;
    const unsigned turn = number_ % 2;
    const CallSignature own_call = group_->own_call().call();
    Flags said{};
    bool differ = false;
    for (int rank = 0; rank < group_->local_size(); ++rank) {
        const ControlPage::Slot &slot = group_->slot(rank);
        said |= slot.said[turn];
        differ |= slot.call[turn] != own_call;
    }
    flags_ = said;
    if (differ) {
        mismatch_.compare_node(*group_, turn);
        flags_ |= flags_if(mismatch_.on_node() != Differences::kNone, kCallsDiffer);
    }
    if (!alone && !group_->is_leader()) {
        sum_ = group_->sum(0, turn, bytes_);
        part_ = Part::kRelease;
        return;
    }
    const HostReduce reduce = reduction_.reduce;
    if (reduce != nullptr && bytes_ != 0 && mismatch_.on_node() == Differences::kNone) {
        std::byte *to = alone ? group_->sum(group_->local_rank(), turn, bytes_) : leader_part();
        if (reduction_.fold != nullptr) {
            const std::span<const void *const> parts = group_->payloads(turn, bytes_);
            reduction_.fold(to, parts.data(), parts.size(), count_);
        } else {
            reduce(to, group_->payload(0, turn, bytes_), group_->payload(1, turn, bytes_), count_);
            for (int rank = 2; rank < group_->local_size(); ++rank) {
                reduce(to, to, group_->payload(rank, turn, bytes_), count_);
            }
        }
        sum_ = to;
    }
    if (alone) {
        part_ = Part::kDone;
        return;
    }
    part_ = Part::kLeaders;
    start_exchange(group_->leaders(), leader_part());
}

} // namespace hetcoll
