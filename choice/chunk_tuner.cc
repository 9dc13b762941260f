#include "choice/chunk_tuner.h"

#include <algorithm>
#include <bit>

namespace hetcoll {
namespace {

constexpr std::size_t kUnit = 16; // of chunks: whole elements of any kind
// Two times of the same chunk differ by less: 1.03 / 0.97.
constexpr std::uint64_t kNoisePercent = 7;

std::size_t power_of_two(std::size_t bytes) noexcept
{
    return kUnit * std::bit_floor(std::max<std::size_t>(bytes / kUnit, 1));
}

bool clearly_above(std::uint64_t ns, std::uint64_t other) noexcept
{
    return ns > other && (ns - other) * 100 > other * kNoisePercent;
}

} // namespace

ChunkTuner::ChunkTuner(std::size_t chunk_bytes, std::size_t min_bytes,
                       std::size_t max_bytes) noexcept
    : min_(power_of_two(min_bytes)), max_(std::max(power_of_two(max_bytes), min_))
{
    first_ = std::clamp(power_of_two(chunk_bytes), min_, max_);
    chunk_ = best_chunk_ = first_;
}

void ChunkTuner::feed(std::uint64_t ns) noexcept
{
    if (frozen()) {
        return;
    }
    faster_ns_ = tries_ == 0 ? ns : std::min(faster_ns_, ns);
    ++tries_;
    if (++calls_ == kMostCalls) {
        if (best_ns_ == 0 || faster_ns_ < best_ns_) {
            best_chunk_ = chunk_;
        }
        freeze();
    } else if (tries_ == kTries) {
        tries_ = 0;
        move_on(faster_ns_);
    }
}

void ChunkTuner::move_on(std::uint64_t ns) noexcept
{
    if (first_ns_ == 0) {
        first_ns_ = best_ns_ = ns;
    }
    const bool hurts = clearly_above(ns, best_ns_);
    if (ns < best_ns_) {
        best_ns_ = ns;
        best_chunk_ = chunk_;
    }
    if (hurts || !step()) {
        turn();
    }
}

// The next chunk of this direction; false if there is none.
bool ChunkTuner::step() noexcept
{
    const std::size_t next = direction_ > 0 ? chunk_ * 2 : chunk_ / 2;
    if (next < min_ || next > max_) {
        return false;
    }
    chunk_ = next;
    return true;
}

// Down only if the way up did not clearly help: there is one valley.
void ChunkTuner::turn() noexcept
{
    if (direction_ > 0 && !clearly_above(first_ns_, best_ns_)) {
        direction_ = -1;
        chunk_ = first_;
        if (step()) {
            return;
        }
    }
    freeze();
}

void ChunkTuner::freeze() noexcept
{
    direction_ = 0;
    chunk_ = best_chunk_;
}

} // namespace hetcoll
