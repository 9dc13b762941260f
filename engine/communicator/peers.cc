#include "engine/communicator/peers.h"

#include <new>

namespace hetcoll {

// The answer of every communicator until its ranks look. Never destroyed: there are no exit
// handlers.
const KnownPeers &Peers::nothing() noexcept
{
    alignas(KnownPeers) static unsigned char place[sizeof(KnownPeers)];
    static const KnownPeers *const made = new (place) KnownPeers;
    return *made;
}

void Peers::start(const PointerInfo &pointer, const DeviceBounce &bounce, Messages &messages,
                  int tag)
{
    search_ =
        std::make_unique<PeerSearch>(process_, group_, allowed_, bounce.device(), messages, tag);
    search_->start(pointer);
}

Progress Peers::step()
{
    const Progress progress = search_->step();
    if (progress == Progress::kDone) {
        known_peers_ = search_->take();
        found_ = known_peers_.get();
        known_ = true;
        ++version_;
        search_.reset();
    }
    return progress;
}

bool Peers::reach(int rank, int other) const noexcept
{
    if (!found_->maps || group_.local_size() == 1) {
        return false;
    }
    const int a = group_.local_number(rank), b = group_.local_number(other);
    return group_.slot(a).reach[static_cast<std::size_t>(b)] &&
           group_.slot(b).reach[static_cast<std::size_t>(a)];
}

void Peers::forget() noexcept
{
    search_.reset();
    known_ = false;
    ++version_;
    found_ = &nothing();
    known_peers_.reset();
}

void Peers::give_up_mapping() noexcept
{
    ++version_;
    if (known_peers_ != nullptr) {
        known_peers_->maps = false;
        known_peers_->prices.reset(); // they are of mapped memory
        known_peers_->ranks.query.available &= kUnmappedAlgorithms;
    }
}

} // namespace hetcoll
