#include "emulated_gpu/lateness.h"

#include "emulated_gpu/hostility.h"
#include "emulated_gpu/settings.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace hetcoll::emulated_gpu {
namespace {

constexpr unsigned kMostYields = 16;
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

} // namespace

void dawdle(unsigned &random)
{
    if (!is_hostile(Hostility::kLate) || settings().stepped) { // who steps decides what is late
        return;
    }
    for (unsigned yields = (next_random(random) >> 16) % kMostYields; yields > 0; --yields) {
        sched_yield();
    }
}

void move_bytes(void *to, const void *from, std::size_t bytes)
{
    const auto target = reinterpret_cast<std::uintptr_t>(to);
    const auto source = reinterpret_cast<std::uintptr_t>(from);
    const bool overlap = target < source + bytes && source < target + bytes;
    if (!is_hostile(Hostility::kLate) || overlap) {
        std::memmove(to, from, bytes);
        return;
    }
    for (std::size_t done = 0; done < bytes; done += kPieceBytes) {
        std::memcpy(static_cast<char *>(to) + done, static_cast<const char *>(from) + done,
                    std::min(kPieceBytes, bytes - done));
        sched_yield();
    }
}

} // namespace hetcoll::emulated_gpu
