#include "engine/communicator/reach_trial.h"

#include <string>
#include <utility>

namespace hetcoll {

ReachTrial::ReachTrial(const NodeGroup &group, Sharing &sharing, std::shared_ptr<Device> device)
    : group_(group), sharing_(sharing), device_(std::move(device))
{
}

bool ReachTrial::offer()
{
    if (is_alone()) {
        return true;
    }
    auto offered = sharing_.reach.offer(device_, *sharing_.exporter);
    if (offered.ok() && !*offered) {
        return false;
    }
    offers_ = offered.ok();
    group_.own_slot().offer = offers_ ? **offered : ReachOffer{};
    if (!offers_) {
        why_not_ = offered.take_status();
    }
    return true;
}

bool ReachTrial::try_others()
{
    if (is_alone()) {
        return true;
    }
    for (; tried_ < group_.local_size(); ++tried_) {
        const bool is_own = tried_ == group_.local_rank();
        const Reach reach = is_own ? Reach::kYes : offers_ ? reach_of(tried_) : Reach::kNo;
        if (reach == Reach::kPending) {
            return false;
        }
        if (reach == Reach::kYes) {
            reached_[static_cast<std::size_t>(tried_)] = true;
        }
    }
    group_.own_slot().reach = reached_;
    return true;
}

// From an earlier communicator, or by trying.
Reach ReachTrial::reach_of(int local)
{
    const int rank = group_.local_ranks()[local];
    const ProcessIdentity &owner = group_.process(rank);
    const ReachOffer &offer = group_.slot(local).offer;
    std::string why;
    Reach reach = sharing_.reach.find(*device_, owner, offer, why);
    if (reach == Reach::kPending) {
        Status begun = begin_probe(local);
        reach = begun.ok() ? probe_->step() : Reach::kNo;
        if (reach == Reach::kNo) {
            why = begun.ok() ? probe_->why().message() : begun.message();
        }
        const bool stays = reach == Reach::kYes || (reach == Reach::kNo && begun.ok() &&
                                                    probe_->why().code() == Errc::kUnsupported);
        if (stays) { // else a lack of memory may be over in the next communicator
            sharing_.reach.note(*device_, owner, offer, reach, why);
        }
    }
    if (reach == Reach::kNo && why_not_.ok()) {
        why_not_ = error(Errc::kUnsupported, "rank %d: %s", rank, why.c_str());
    }
    return reach;
}

Status ReachTrial::begin_probe(int local)
{
    if (probed_ == local) {
        return {};
    }
    if (probe_ == nullptr) {
        auto probe = ReachProbe::create(device_, *sharing_.memory);
        if (!probe.ok()) {
            return probe.take_status();
        }
        probe_ = std::move(*probe);
    }
    probed_ = local;
    probe_->start(group_.process(group_.local_ranks()[local]), group_.slot(local).offer);
    return {};
}

bool ReachTrial::reaches_all() const noexcept
{
    return is_alone() || reached_.count() == static_cast<std::size_t>(group_.local_size());
}

// Where GPUs are joined pair by pair it is usual that some are not, but then neither reads the
// other: if one of two does, something has failed.
void ReachTrial::say_unreachable(const Log &to) const
{
    bool some_reach = false;
    int first = -1, one_sided = -1; // ranks of this node whose trial failed
    const int ranks = is_alone() ? 0 : group_.local_size();
    for (int rank = 0; rank < ranks && one_sided < 0; ++rank) {
        const auto read = static_cast<int>(group_.slot(rank).reach.count());
        some_reach = some_reach || read > 1; // its own is among them
        if (read == ranks) {
            continue;
        }
        first = first < 0 ? rank : first;
        for (int other = 0; other < ranks && one_sided < 0; ++other) {
            one_sided = !reads(rank, other) && reads(other, rank) ? rank : one_sided;
        }
    }
    const bool usual = some_reach && one_sided < 0;
    if ((one_sided < 0 ? first : one_sided) == group_.local_rank()) {
        log(to, usual ? 1 : 0,
            "hetcoll: some GPUs of this node do not share memory, so data between them goes "
            "through host memory, which is slower. First reason: %s",
            why_not_.ok() ? "a peer offered none" : why_not_.message().c_str());
    }
}

} // namespace hetcoll
