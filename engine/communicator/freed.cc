#include "engine/communicator/freed.h"

#include "engine/meeting/flags.h"

namespace hetcoll {

Flags Freed::tell(Exporter &exporter) noexcept
{
    told_ = exporter.freed();
    closes_ = true;
    if (!has_peers()) {
        return Flags{};
    }
    // This rank is one of them, and told of all that any other is.
    const FreedMemory news = exporter.tell_freed(group_.processes(), group_.local_ranks());
    if (news.count != 0) {
        group_.own_slot().freed[(group_.meetings() + 1) % 2] = news;
    }
    return flags_if(news.count != 0, kMemoryFreed);
}

void Freed::hear() noexcept
{
    Sharing *const sharing = sharing_.made();
    if (sharing == nullptr || !has_peers()) {
        return;
    }
    const unsigned turn = group_.meetings() % 2;
    for (const int rank : group_.local_ranks()) {
        const ControlPage::Slot &slot = group_.slot(group_.local_number(rank));
        if (rank != group_.all().rank && any(slot.said[turn], kMemoryFreed)) {
            const FreedMemory freed = slot.freed[turn]; // used as one, whatever its owner does
            sharing->memory->forget(group_.process(rank), freed);
            closes_ = true;
        }
    }
}

void Freed::close_now() noexcept
{
    Sharing &sharing = *sharing_.made();
    closes_ = false;
    sharing.memory->close_freed();
    const QueuedCalls::Waiting waiting(&contexts_.queued());
    if (waiting.may()) {
        sharing.exporter->release_freed();
    } else {
        closes_ = true;
    }
}

} // namespace hetcoll
