// A process's knowledge of whose memory its GPUs reach. An offer and a trial make, map and free
// memory, calls that may wait for the whole device. So each device's memory is offered once, and an
// offer is tried once, whatever the number of communicators in which two processes meet. Thread
// safe.
#pragma once

#include "transport/reach_probe.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

class KnownReach {
public:
    // The offer of this device's memory, made at first use and kept; also that it cannot be shared.
    // Nothing: it is still being filled, ask again. An error of its own if the context is gone.
    [[nodiscard]] Result<std::optional<ReachOffer>> offer(const std::shared_ptr<Device> &device,
                                                          Exporter &exporter);

    // Whether `device` reaches what was offered. kPending: nobody has tried. `why` is set with kNo.
    [[nodiscard]] Reach find(const Device &device, const ProcessIdentity &owner,
                             const ReachOffer &offer, std::string &why) const;
    void note(const Device &device, const ProcessIdentity &owner, const ReachOffer &offer,
              Reach verdict, const std::string &why);

private:
    struct Target {
        std::shared_ptr<Device> device;
        std::mutex mutex; // of the rest
        std::unique_ptr<ReachTarget> target;
        std::string why_not;

        [[nodiscard]] Result<std::optional<ReachOffer>> offer(Exporter &exporter);
    };
    struct Trial {
        unsigned long long context; // Context::id()
        ProcessIdentity owner;
        std::uint64_t buffer_id, seed; // of the offer
        Reach verdict;
        std::string why;
    };
    [[nodiscard]] static bool is_of(const Trial &trial, const Device &device,
                                    const ProcessIdentity &owner, const ReachOffer &offer) noexcept;

    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Target>>
        targets_; // a process has few devices, and a node few processes
    std::vector<Trial> trials_;
};

} // namespace hetcoll
