// The streams on which a rank reads its peers' mapped memory, and the events that tell which reads
// are done. With few channels, the steps of one channel take turns on several streams: they use
// different links at the same time, while the chunks of one step stay in order.
#pragma once

#include "base/slots.h"
#include "base/status.h"
#include "device/device.h"
#include "transport/bounce.h"

#include <array>
#include <cstddef>
#include <vector>

namespace hetcoll {

// All calls but divide() require the device's context to be current.
class PullStreams {
public:
    // `device` outlives it.
    PullStreams(Device &device, StreamOrder order) noexcept : device_(device), order_(order) {}

    // From now on all channels share a few streams: a stream that waits may share one of the GPU's
    // queues with others.
    void share() noexcept { shared_ = true; }
    // Before an operation: divides the streams among `channels`. False: call make() first.
    [[nodiscard]] bool divide(std::size_t channels) noexcept;
    Status make(std::size_t channels);
    // Waits for all streams.
    void finish() const noexcept;

    Status start(int channel, int slot, const Pull &pull);
    // The end of the last pull that was started there.
    [[nodiscard]] const EventHandle &done(int channel, int slot) const noexcept
    {
        return done_[channel][slot];
    }

private:
    Device &device_;
    StreamOrder order_;
    bool shared_ = false;
    std::size_t streams_per_channel_ = 1;
    std::vector<StreamHandle> streams_;
    std::vector<std::array<EventHandle, kWindowSlots>> done_; // by channel
};

} // namespace hetcoll
