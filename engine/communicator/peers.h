// How the ranks of a communicator reach each other's GPUs. Found out by all ranks together, at the
// first call in which all have device memory, and the same on every rank afterwards.
#pragma once

#include "engine/communicator/known_peers.h"
#include "engine/communicator/peer_search.h"
#include "plan/way.h"

#include <memory>

namespace hetcoll {

class Peers {
public:
    // Both outlive it.
    Peers(Process &process, NodeGroup &group, PeerSearch::Allowed allowed) noexcept
        : process_(process), group_(group), allowed_(allowed)
    {
    }

    // True once the ranks have found out.
    [[nodiscard]] bool known() const noexcept { return known_; }
    [[nodiscard]] bool searches() const noexcept { return search_ != nullptr; }
    // Every rank has device memory: this rank's is `pointer`'s, worked on with `bounce`.
    void start(const PointerInfo &pointer, const DeviceBounce &bounce, Messages &messages, int tag);
    [[nodiscard]] Progress step();
    [[nodiscard]] int code() const noexcept { return search_->code(); } // requires kFailed
    // After a driver error, which all ranks know of: contexts may be gone. They find out again.
    void forget() noexcept;
    // Some rank works on another device, as all know: they find out again, but not without end.
    void count_move() noexcept { ++moves_; }
    [[nodiscard]] bool may_move() const noexcept { return moves_ < kMostMoves; }
    // After a peer's memory could not be mapped on some rank: nobody tries again.
    void give_up_mapping() noexcept;

    // Their findings; until known(), that there are only messages.
    [[nodiscard]] const KnownPeers &found() const noexcept { return *found_; }
    // The carrier of such calls next to Open MPI's messages; null: none. Until forget().
    [[nodiscard]] Carrier *carrier_of(const Way &way) const noexcept
    {
        return uses_adapters(way) ? adapters() : nullptr;
    }
    // No rank is waited for any more: what has carried messages, or is being tried, ends.
    void abandon() noexcept
    {
        if (Adapters *const used = adapters()) {
            used->abandon();
        }
    }
    // How often that has changed: what was made of it before holds no longer.
    [[nodiscard]] unsigned version() const noexcept { return version_; }
    // Whether the device of a call is the one that the ranks were asked about.
    [[nodiscard]] bool is_known_device(const Device &device) const noexcept
    {
        return found_->device.get() == &device;
    }
    // Whether the two ranks' GPUs read each other's memory. Requires ranks of this node.
    [[nodiscard]] bool reach(int rank, int other) const noexcept;

private:
    [[nodiscard]] static const KnownPeers &nothing() noexcept;
    // That serve these ranks, or are being tried; null: none.
    [[nodiscard]] Adapters *adapters() const noexcept
    {
        return (search_ != nullptr ? search_->found() : *found_).adapters.get();
    }

    Process &process_;
    NodeGroup &group_;
    const PeerSearch::Allowed allowed_;
    std::unique_ptr<PeerSearch> search_; // while it runs, or after the network failed
    bool known_ = false;
    unsigned version_ = 0;
    static constexpr int kMostMoves = 16;
    int moves_ = 0;
    std::unique_ptr<KnownPeers> known_peers_; // null: nothing was found
    const KnownPeers *found_ = &nothing();
};

} // namespace hetcoll
