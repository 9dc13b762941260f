#include "transport/known_reach.h"

#include <algorithm>
#include <iterator>

namespace hetcoll {

Result<std::optional<ReachOffer>> KnownReach::offer(const std::shared_ptr<Device> &device,
                                                    Exporter &exporter)
{
    if (!device->is_alive()) { // else its target would be dropped and begun again without end
        return error(Errc::kDriver, "the context of a buffer is gone");
    }
    std::shared_ptr<Target> target;
    std::vector<std::shared_ptr<Target>> gone; // destroyed after the lock
    {
        const std::lock_guard lock(mutex_);
        const auto first_gone =
            std::partition(targets_.begin(), targets_.end(),
                           [](const auto &known) { return known->device->is_alive(); });
        gone.assign(std::make_move_iterator(first_gone), std::make_move_iterator(targets_.end()));
        targets_.erase(first_gone, targets_.end());
        const auto at = std::find_if(targets_.begin(), targets_.end(),
                                     [&](const auto &known) { return known->device == device; });
        if (at != targets_.end()) {
            target = *at;
        } else {
            target = std::make_shared<Target>();
            target->device = device;
            targets_.push_back(target);
        }
    }
    return target->offer(exporter);
}

// The lock of one device's target alone: making it may wait for that device.
Result<std::optional<ReachOffer>> KnownReach::Target::offer(Exporter &exporter)
{
    const std::lock_guard lock(mutex);
    if (!why_not.empty()) {
        return error(Errc::kUnsupported, "%s", why_not.c_str());
    }
    if (target == nullptr) {
        auto made = ReachTarget::create(device, exporter);
        if (!made.ok()) {
            if (made.status().code() == Errc::kUnsupported) { // and will be the next time
                why_not = made.status().message();
            }
            return made.take_status();
        }
        target = std::move(*made);
    }
    Result<bool> filled = target->step();
    if (!filled.ok()) {
        target.reset();
        return filled.take_status();
    }
    return *filled ? std::optional(target->offer()) : std::optional<ReachOffer>();
}

Reach KnownReach::find(const Device &device, const ProcessIdentity &owner, const ReachOffer &offer,
                       std::string &why) const
{
    const std::lock_guard lock(mutex_);
    const auto known = trials_.find(trial_of(device, owner, offer));
    if (known == trials_.end()) {
        return Reach::kPending;
    }
    why = known->second.why;
    return known->second.reach;
}

void KnownReach::note(const Device &device, const ProcessIdentity &owner, const ReachOffer &offer,
                      Reach verdict, const std::string &why)
{
    const std::lock_guard lock(mutex_);
    trials_.insert_or_assign(trial_of(device, owner, offer), Verdict{verdict, why});
}

} // namespace hetcoll
