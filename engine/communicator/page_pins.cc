#include "engine/communicator/page_pins.h"

namespace hetcoll {

void PagePins::pin(Device &device)
{
    ControlPage &page = group_.page();
    SharedPage &made = page.rooms().data() != nullptr ? page.rooms() : page.memory();
    const unsigned long long context = device.context_ref()->id();
    if (group_.local_size() == 1 || !page.exists() ||
        (pins_ && pins_->context == context && pins_->made == made.data())) {
        return;
    }
    const QueuedCalls::Waiting waiting(&gpus_.contexts().queued());
    if (!waiting.may()) {
        return;
    }
    pins_ = Pins{context, made.data(), {}, {}};
    const std::size_t bytes = page.memory().bytes() + page.rooms().bytes();
    if (!gpus_.pool().may_hold(bytes)) {
        log(log_, 1,
            "hetcoll: small calls go by pageable memory: pinning %zu bytes would "
            "be more than coll_hetcoll_max_memory %zu allows",
            bytes, most_bytes_);
        return;
    }
    const auto pin = [&](const SharedPage &memory, PinnedMemory &pinned) {
        auto made_pinned = device.register_host(memory.data(), memory.bytes());
        if (made_pinned.ok()) {
            pinned = std::move(*made_pinned);
        } else {
            log(log_, 1, "hetcoll: small calls go by pageable memory: %s",
                made_pinned.status().message().c_str());
        }
    };
    pin(page.memory(), pins_->page);
    if (page.rooms().data() != nullptr) {
        pin(page.rooms(), pins_->rooms);
    }
}

} // namespace hetcoll
