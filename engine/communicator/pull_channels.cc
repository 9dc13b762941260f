#include "engine/communicator/pull_channels.h"

#include "engine/communicator/ordered_inputs.h"

#include <algorithm>

namespace hetcoll {

// Which steps go by mapped memory, and which receives one pull serves.
void PullChannels::start(const MappedPeers &mapped, int own_rank, Bounce &bounce,
                         std::size_t chunk_bytes)
{
    using Transfer = StepProgress::Transfer;
    mapped_ = mapped;
    own_rank_ = own_rank;
    bounce_ = &bounce;
    const std::size_t element = element_bytes(steps_.vectors().kind);
    pull_bytes_ = chunk_bytes / element * element;
    any_ = false;
    bytes_ = 0;
    offers_.clear();
    windows_.assign(static_cast<std::size_t>(steps_.schedule().channel_count), {});
    if (mapped.peer.empty()) {
        return;
    }
    StepProgress::Extent *head = nullptr; // of the pull that the step may join
    for (int i = 0; i < steps_.count(); ++i) {
        const Step &step = steps_.step(i);
        StepProgress::Extent &extent = steps_.extent(i);
        if (step.by_message || step.together || mapped.peer[step.peer].input == nullptr) {
            head = nullptr;
        } else if (step.kind == StepKind::kSend) {
            extent.transfer = Transfer::kOffer;
            offers_.push_back({i});
            head = nullptr;
        } else if (step.fused && head != nullptr && head->steps + 1 < kMaxArgumentInputs) {
            extent.transfer = Transfer::kWithAnotherPull;
            ++head->steps;
        } else {
            extent.transfer = Transfer::kPull;
            any_ = true;
            head = step.kind == StepKind::kRecvReduce ? &extent : nullptr;
        }
    }
}

std::size_t PullChannels::progress_of_peer(int step) const noexcept
{
    const MappedPeer &peer = mapped_.peer[steps_.step(step).peer];
    return peer.progress[mapped_.steps[step].peer_word].load(std::memory_order_acquire);
}

void PullChannels::follow_and_offer(int channels)
{
    for (const Offer &offer : offers_) {
        StepProgress::Extent &extent = steps_.extent(offer.step);
        if (extent.done != extent.bytes && steps_.step(offer.step).channel < channels) {
            extent.done = progress_of_peer(offer.step);
        }
    }
    for (Offer &offer : offers_) {
        if (offer.bytes == steps_.extent(offer.step).bytes ||
            steps_.step(offer.step).channel >= channels) {
            continue;
        }
        if (const std::size_t ready = steps_.ready_bytes(offer.step); ready > offer.bytes) {
            offer.bytes = ready;
            mapped_.progress[mapped_.steps[offer.step].word].store(ready,
                                                                   std::memory_order_release);
        }
    }
}

bool PullChannels::step(int channel)
{
    if (!any_) {
        return false;
    }
    start_pulls(channel);
    finish_pulls(channel);
    Window<Chunk> &window = windows_[channel];
    return !window.empty() || steps_.find_next(window.next, channel, StepProgress::Transfer::kPull);
}

// True if the chunk may be written here, and read at every peer of the pull.
bool PullChannels::can_pull(const Chunk &chunk) const noexcept
{
    const std::size_t end = chunk.offset + chunk.bytes;
    if (!steps_.is_ready(chunk)) {
        return false;
    }
    for (int i = chunk.step; i < chunk.step + steps_.extent(chunk.step).steps; ++i) {
        if (progress_of_peer(i) < end) {
            return false;
        }
    }
    return true;
}

void PullChannels::start_pulls(int channel)
{
    Window<Chunk> &window = windows_[channel];
    while (window.tail - window.head < kWindowSlots &&
           steps_.find_next(window.next, channel, StepProgress::Transfer::kPull)) {
        const Chunk chunk = steps_.chunk_at(window.next, pull_bytes_);
        if (!can_pull(chunk)) {
            return;
        }
        const unsigned slot = window.tail++ % kWindowSlots;
        window.at(slot) = chunk;
        window.next.offset += chunk.bytes;
        bytes_ += chunk.bytes * static_cast<std::size_t>(steps_.extent(chunk.step).steps);
        if (!error_.failed()) {
            error_.note(bounce_->start_pull(channel, static_cast<int>(slot), pull_of(chunk)));
        }
    }
}

void PullChannels::finish_pulls(int channel)
{
    Window<Chunk> &window = windows_[channel];
    while (!window.empty()) {
        const auto slot = static_cast<int>(window.head % kWindowSlots);
        if (!error_.is_over([&] { return bounce_->pull_done(channel, slot); })) {
            return;
        }
        const Chunk &chunk = window.first();
        for (int i = chunk.step; i < chunk.step + steps_.extent(chunk.step).steps; ++i) {
            std::size_t &done = steps_.extent(i).done;
            done += chunk.bytes;
            mapped_.progress[mapped_.steps[i].word].store(done, std::memory_order_release);
        }
        ++window.head;
    }
}

bool PullChannels::works_on_device(int channel)
{
    finish_pulls(channel);
    return !windows_[channel].empty();
}

bool PullChannels::waits_for_device() const noexcept
{
    return std::any_of(windows_.begin(), windows_.end(),
                       [](const Window<Chunk> &window) { return !window.empty(); });
}

bool PullChannels::all_are_read() const noexcept
{
    return std::all_of(offers_.begin(), offers_.end(), [this](const Offer &offer) {
        const StepProgress::Extent &extent = steps_.extent(offer.step);
        return extent.done == extent.bytes;
    });
}

std::uint64_t PullChannels::moves() const noexcept
{
    std::uint64_t moves = 0;
    for (const Window<Chunk> &window : windows_) {
        moves += std::uint64_t{window.head} + window.tail;
    }
    return moves;
}

// The operands in the order of their ranks.
Pull PullChannels::pull_of(const Chunk &chunk) const noexcept
{
    const Vectors &vectors = steps_.vectors();
    Pull pull{.op = vectors.op,
              .kind = vectors.kind,
              .dst = steps_.result(chunk),
              .inputs = {},
              .count = steps_.elements(chunk),
              .step = chunk.step};
    OrderedInputs inputs(pull.inputs);
    if (steps_.step(chunk.step).kind == StepKind::kRecvReduce) {
        inputs.insert(own_rank_, steps_.operand(chunk));
    }
    for (int i = chunk.step; i < chunk.step + steps_.extent(chunk.step).steps; ++i) {
        const int peer = steps_.step(i).peer;
        const MappedPeer &mapped = mapped_.peer[peer];
        const std::byte *base = mapped_.steps[i].peer_from_input ? mapped.input : mapped.output;
        inputs.insert(peer, base + steps_.extent(i).first + chunk.offset);
    }
    return pull;
}

} // namespace hetcoll
