// Can this GPU read and write that process's memory? Containers, missing links and drivers have
// many ways to say no, so it is tried: the owner offers a little memory with a random content, the
// other maps it, reads and writes it by kernel and by copy, as calls do, and compares. Nothing here
// waits.
#pragma once

#include "base/status.h"
#include "device/device.h"
#include "transport/exporter.h"
#include "transport/node_identity.h"
#include "transport/peer_memory.h"

#include <cstdint>
#include <memory>

namespace hetcoll {

// Goes through shared memory or messages as it is.
struct ReachOffer {
    SharedBuffer buffer;
    std::uint64_t seed; // of the content
};

// The owner's side.
class ReachTarget {
public:
    // Allocates the memory and starts to fill it.
    static Result<std::unique_ptr<ReachTarget>> create(const std::shared_ptr<Device> &device,
                                                       Exporter &exporter);
    ~ReachTarget();
    // True once offer() may be given to peers.
    [[nodiscard]] Result<bool> step();
    [[nodiscard]] const ReachOffer &offer() const noexcept;

private:
    struct Impl;
    explicit ReachTarget(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

enum class Reach : std::uint8_t { kPending, kYes, kNo };

// The other side, for one offer after the other.
class ReachProbe {
public:
    static Result<std::unique_ptr<ReachProbe>> create(std::shared_ptr<Device> device,
                                                      PeerMemory &memory);
    ~ReachProbe();
    void start(const ProcessIdentity &owner, const ReachOffer &offer);
    [[nodiscard]] Reach step() noexcept;
    // Why step() said kNo.
    [[nodiscard]] const Status &why() const noexcept;

private:
    struct Impl;
    explicit ReachProbe(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace hetcoll
