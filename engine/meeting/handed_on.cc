#include "engine/meeting/handed_on.h"

namespace hetcoll {

namespace {

// Entries are read while their rank may write them.
std::optional<CallSignature> read(const ControlPage::Slot::HandedOn &entry)
{
    CallSignature call;
    call.rest = entry.rest.load(std::memory_order_seq_cst);
    call.what = entry.what.load(std::memory_order_acquire);
    return call.rest != 0 && entry.rest.load(std::memory_order_relaxed) == call.rest
               ? std::optional(call)
               : std::nullopt;
}

} // namespace

void HandedOn::start_telling() noexcept
{
    tells_ = true;
    own_ = &page_.slot(ranks_.local_rank());
    before_ = &page_.slot(ranks_.local_before());
    behind_ = &page_.slot(ranks_.local_behind());
}

std::optional<CallSignature> HandedOn::of(int local_rank, std::uint32_t number) const noexcept
{
    const auto call = read(page_.slot(local_rank).handed_on[number % ControlPage::kHandedOn]);
    return call && call->number() == number ? call : std::nullopt;
}

std::optional<CallSignature> HandedOn::last_of(int local_rank) const noexcept
{
    std::optional<CallSignature> last;
    for (const ControlPage::Slot::HandedOn &entry : page_.slot(local_rank).handed_on) {
        const auto call = read(entry);
        if (call && (!last || is_later(call->number(), last->number()))) {
            last = call;
        }
    }
    return last;
}

HandedOn::Place HandedOn::place_of(int local_rank, const CallSignature &own) const noexcept
{
    const ControlPage::Slot &rank = page_.slot(local_rank);
    Place place{false, std::nullopt};
    const auto look = [&](const CallSignature &call) {
        if (call.number() == 0) {
            return; // not counted
        }
        place.has_come = place.has_come || !is_later(own.number(), call.number());
        if (call.number() == own.number() && call != own) {
            place.call = call;
        }
    };
    for (const ControlPage::Slot::HandedOn &entry : rank.handed_on) {
        if (const auto call = read(entry)) {
            look(*call);
        }
    }
    if (rank.arrived.load(std::memory_order_acquire) == meetings_ + 1) {
        look(rank.call[(meetings_ + 1) % 2]); // it waits for this rank
    }
    return place;
}

std::optional<HandedOn::Begun> HandedOn::begun_instead(const CallSignature &call) const noexcept
{
    if (!tells_) {
        return std::nullopt;
    }
    for (const int local : {ranks_.local_before(), ranks_.local_behind()}) {
        auto other = of(local, call.number());
        const ControlPage::Slot &slot = page_.slot(local);
        if (!other && slot.arrived.load(std::memory_order_acquire) == meetings_ + 1) {
            const CallSignature &met = slot.call[(meetings_ + 1) % 2]; // it waits for this rank
            other = met.number() == call.number() ? std::optional(met) : std::nullopt;
        }
        if (other && *other != call) {
            return Begun{ranks_.local_ranks()[local], *other};
        }
    }
    return std::nullopt;
}

} // namespace hetcoll
