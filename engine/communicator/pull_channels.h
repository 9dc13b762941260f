// The steps of a call between ranks that map each other's memory. Whoever receives reads the peer's
// memory; both sides watch each other's progress, in the control page. A send needs no slot and no
// turn.
#pragma once

#include "engine/communicator/first_error.h"
#include "engine/communicator/step_progress.h"
#include "schedule/match.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hetcoll {

// A rank whose memory is mapped here.
struct MappedPeer {
    const std::byte *input = nullptr, *output = nullptr; // its vectors; null: it is not mapped
    const std::atomic<std::uint64_t> *progress = nullptr;
};

// Where the executor reads mapped peers' memory and progress, and writes its own progress.
struct MappedPeers {
    std::span<const MappedPeer> peer; // by rank; empty: none is mapped
    std::span<const LocalStep> steps; // of the schedule
    // This rank's own progress: of a send the bytes that may be read, of a receive those that have
    // been. All zero before any peer starts.
    std::atomic<std::uint64_t> *progress = nullptr;
};

class PullChannels {
public:
    // Both outlive it.
    PullChannels(StepProgress &steps, FirstError &error) noexcept : steps_(steps), error_(error) {}

    // Takes the steps with mapped peers for itself. `own_rank` pulls with `bounce`.
    void start(const MappedPeers &mapped, int own_rank, Bounce &bounce, std::size_t chunk_bytes);
    [[nodiscard]] bool any() const noexcept { return any_; }
    // Sees what peers have read of this rank's sends in the first `channels`, and then tells peers
    // what they may read.
    void follow_and_offer(int channels);
    // Does what can be done now. False: nothing is left to be pulled in the channel.
    [[nodiscard]] bool step(int channel);
    // Starts nothing. True: a pull is under way.
    [[nodiscard]] bool works_on_device(int channel);
    [[nodiscard]] bool waits_for_device() const noexcept;
    // Peers have read all of this rank's sends.
    [[nodiscard]] bool all_are_read() const noexcept;

    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; } // read from peers
    [[nodiscard]] std::uint64_t moves() const noexcept;

private:
    struct Offer {
        int step;
        std::size_t bytes = 0; // that the peer may read
    };

    void start_pulls(int channel);
    void finish_pulls(int channel);
    [[nodiscard]] std::size_t progress_of_peer(int step) const noexcept;
    [[nodiscard]] bool can_pull(const Chunk &chunk) const noexcept;
    [[nodiscard]] Pull pull_of(const Chunk &chunk) const noexcept;

    StepProgress &steps_;
    FirstError &error_;
    MappedPeers mapped_;
    int own_rank_ = 0;
    Bounce *bounce_ = nullptr;
    std::size_t pull_bytes_ = 0; // most of one
    bool any_ = false;
    std::vector<Offer> offers_;
    std::vector<Window<Chunk>> windows_; // by channel
    std::size_t bytes_ = 0;
};

} // namespace hetcoll
