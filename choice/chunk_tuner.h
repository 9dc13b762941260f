// Finds the chunk of one kind of call in its first calls: doubles it until that clearly hurts,
// halves it from where it began until that clearly hurts, then takes the best and stays. If the
// times over the chunk have one valley and noise moves each by at most 3 %, the chunk is within 7 %
// of the best. Pure: the same times give the same chunks, so ranks that agree on the times (their
// maximum, say) stay together.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hetcoll {

class ChunkTuner {
public:
    // Starts at `chunk_bytes`, rounded to a power of two times 16, and stays within both bounds.
    ChunkTuner(std::size_t chunk_bytes, std::size_t min_bytes, std::size_t max_bytes) noexcept;

    // The chunk of the next call.
    [[nodiscard]] std::size_t chunk_bytes() const noexcept { return chunk_; }
    // How long a call with chunk_bytes() took. After the freeze it changes nothing.
    void feed(std::uint64_t ns) noexcept;
    [[nodiscard]] bool frozen() const noexcept { return direction_ == 0; }

    static constexpr int kTries = 2; // of each chunk, the faster counts: noise only ever adds
    static constexpr int kMostCalls = 20;

private:
    void move_on(std::uint64_t ns) noexcept;
    bool step() noexcept;
    void turn() noexcept;
    void freeze() noexcept;

    std::size_t first_, chunk_, best_chunk_;
    std::size_t min_, max_;
    std::uint64_t first_ns_ = 0, best_ns_ = 0; // 0: nothing measured yet
    std::uint64_t faster_ns_ = 0;              // of this chunk's tries
    int direction_ = 1;                        // 1: up, -1: down, 0: frozen
    int tries_ = 0, calls_ = 0;
};

} // namespace hetcoll
