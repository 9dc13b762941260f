#include "engine/communicator/freed.h"

#include "engine/meeting/flags.h"

namespace hetcoll {

Freed::Freed(Store &store, const NodeGroup &group) : store_(store), group_(group)
{
    for (const int rank : group.local_ranks()) {
        if (rank != group.all().rank) {
            peers_.push_back(group.process(rank));
        }
    }
}

Flags Freed::tell(Exporter &exporter) noexcept
{
    told_ = exporter.freed();
    closes_ = true;
    if (peers_.empty() || !group_.uses_pages()) {
        return Flags{};
    }
    const FreedMemory news = exporter.tell_freed(peers_);
    if (news.count != 0) {
        group_.own_slot().freed[(group_.meetings() + 1) % 2] = news;
    }
    return flags_if(news.count != 0, kMemoryFreed);
}

void Freed::hear() noexcept
{
    Sharing *const sharing = store_.made_sharing();
    if (sharing == nullptr || peers_.empty() || !group_.uses_pages()) {
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
    Sharing &sharing = *store_.made_sharing();
    closes_ = false;
    sharing.memory->close_freed();
    const QueuedCalls::Waiting waiting(&store_.queued());
    if (waiting.may()) {
        sharing.exporter->release_freed();
    } else {
        closes_ = true;
    }
}

} // namespace hetcoll
