// When work runs on a device, from a hostile driver: as late as it may, and among that of other
// streams.
#pragma once

#include <cstddef>

namespace hetcoll::emulated_gpu {

// Numerical Recipes' generator; its low bits are poor.
inline unsigned next_random(unsigned &random) { return random = random * 1664525u + 1013904223u; }

// Lets others go first, for a while that `random` chooses: before work of a stream begins, and
// before anybody learns that it has ended.
void dawdle(unsigned &random);

// memmove, in pieces among which other streams run.
void move_bytes(void *to, const void *from, std::size_t bytes);

} // namespace hetcoll::emulated_gpu
