// A process's knowledge of whose memory its GPUs reach. An offer and a trial make, map and free
// memory, calls that may wait for the whole device. So each device's memory is offered once, and an
// offer is tried once, whatever the number of communicators in which two processes meet. Thread
// safe.
#pragma once

#include "transport/reach_probe.h"

#include <compare>
#include <map>
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

        friend auto operator<=>(const Trial &, const Trial &) = default;
    };
    struct Verdict {
        Reach reach;
        std::string why;
    };
    [[nodiscard]] static Trial trial_of(const Device &device, const ProcessIdentity &owner,
                                        const ReachOffer &offer) noexcept
    {
        return {device.context_ref()->id(), owner, offer.buffer.buffer_id, offer.seed};
    }

    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Target>> targets_; // a process has few devices
    std::map<Trial, Verdict> trials_;
};

} // namespace hetcoll
