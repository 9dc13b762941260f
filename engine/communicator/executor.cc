#include "engine/communicator/executor.h"

namespace hetcoll {

void Executor::start(const Schedule &schedule, const hetcoll_p2p &p2p, int tag, Bounce &bounce,
                     const Vectors &vectors, std::size_t chunk_bytes, bool failed,
                     const MappedPeers &mapped, const Carrier *second)
{
    steps_.start(schedule, vectors);
    error_.start(failed);
    pulls_.start(mapped, p2p.rank, bounce, chunk_bytes);
    messages_.start(p2p, tag, bounce, second, chunk_bytes,
                    pulls_.any() ? schedule.channel_count : 0);
    open_channels_ = schedule.channel_count;
    stopped_ = abandoned_ = false;
}

Progress Executor::step()
{
    messages_.enter();
    bool more = false;
    if (abandoned_) {
        for (int c = 0; c < steps_.schedule().channel_count; ++c) {
            more = messages_.works_on_device(c) || pulls_.works_on_device(c) || more;
        }
        return more ? Progress::kPending : Progress::kDone;
    }
    pulls_.follow_and_offer(open_channels_);
    for (int c = 0; c < open_channels_; ++c) {
        if (stopped_) {
            more = pulls_.works_on_device(c) || more;
            continue;
        }
        more = messages_.step(c) || more;
        more = pulls_.step(c) || more;
    }
    if (messages_.code() != 0) {
        return Progress::kFailed;
    }
    return more || (!stopped_ && !pulls_.all_are_read()) ? Progress::kPending : Progress::kDone;
}

} // namespace hetcoll
