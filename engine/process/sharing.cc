#include "engine/process/sharing.h"

namespace hetcoll {

Sharing &NodeSharing::get()
{
    const std::lock_guard lock(mutex_);
    if (!sharing_) {
        sharing_.emplace();
        auto socket = FdSocket::create(log_);
        if (socket.ok()) {
            sharing_->socket = std::move(*socket);
        } else {
            hetcoll::log(log_, 1, "hetcoll: %s", socket.status().message().c_str());
        }
        const Driver &driver = *driver_.get();
        sharing_->exporter = Exporter::create(driver, sharing_->socket, log_);
        PeerLimits limits;
        limits.bytes = settings_.max_mapped;
        sharing_->memory = PeerMemory::create(driver, self_, sharing_->socket, limits, log_);
        made_.store(&*sharing_, std::memory_order_release);
    }
    return *sharing_;
}

PeerCounters NodeSharing::counters() const
{
    const std::lock_guard lock(mutex_);
    return sharing_ ? sharing_->memory->counters() : PeerCounters{};
}

} // namespace hetcoll
