#include "transport/pull_streams.h"

#include <algorithm>
#include <utility>

namespace hetcoll {

bool PullStreams::divide(std::size_t channels) noexcept
{
    streams_per_channel_ = channels == 0 ? 1 : std::max<std::size_t>(kWindowSlots / channels, 1);
    return channels <= done_.size();
}

Status PullStreams::make(std::size_t channels)
{
    constexpr std::size_t kShared = 4;
    const std::size_t streams = channels == 0 ? 0
                                : shared_     ? kShared
                                              : std::max<std::size_t>(channels, kWindowSlots);
    while (streams_.size() < streams) {
        auto stream = device_.make_stream(order_);
        if (!stream.ok()) {
            return stream.take_status();
        }
        streams_.push_back(std::move(*stream));
    }
    while (done_.size() < channels) {
        std::array<EventHandle, kWindowSlots> events;
        for (EventHandle &event : events) {
            auto made = device_.make_event();
            if (!made.ok()) {
                return made.take_status();
            }
            event = std::move(*made);
        }
        done_.push_back(std::move(events));
    }
    return {};
}

void PullStreams::finish() const noexcept
{
    for (const StreamHandle &stream : streams_) {
        device_.driver().cuStreamSynchronize(stream.get());
    }
}

Status PullStreams::start(int channel, int slot, const Pull &pull)
{
    const ReduceInputs &in = pull.inputs;
    const std::size_t turn = static_cast<std::size_t>(pull.step) % streams_per_channel_;
    const std::size_t number = static_cast<std::size_t>(channel) * streams_per_channel_ + turn;
    CUstream stream = streams_[number % streams_.size()].get();
    Status status;
    if (in.count == 1) {
        status = device_.copy_async(pull.dst, in.input[0], pull.count * element_bytes(pull.kind),
                                    stream);
    } else if (in.count == 2) {
        status = device_.kernels().reduce_async(pull.op, pull.kind, pull.dst, in.input[0],
                                                in.input[1], pull.count, stream);
    } else {
        status = device_.kernels().reduce_many_async(pull.op, pull.kind, {{pull.dst}, 1}, in,
                                                     pull.count, Signal{}, stream);
    }
    return status.ok() ? device_.record(done_[channel][slot], stream) : std::move(status);
}

} // namespace hetcoll
