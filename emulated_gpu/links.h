// The link model: work that moves bytes between devices, or between a device and the host, lasts as
// long as the links on their way need, shared with all processes of the node. What EMU_LINKS does
// not slow down is still counted.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll::emulated_gpu {

// Bytes that one piece of work moves. Devices are the node's, not the process's ordinals.
struct Crossing {
    int from, to; // kHostMemory for host memory
    std::uint64_t bytes;
};

// A stream's thread calls these around each piece of work. Work that was submitted before the last
// piece ended starts when that ended, not when the thread woke up: a GPU goes from one to the next.
void start_turn(std::uint64_t submitted_ns);
void end_turn();

// The parts of carry() before and after the body.
[[nodiscard]] std::uint64_t start_carrying(const std::vector<Crossing> &crossings);
void finish_carrying(const std::vector<Crossing> &crossings, std::uint64_t started_ns);

// Runs `body`, counts the crossings, and sleeps until the links would have carried them, from the
// start of the turn on.
template <class Body> void carry(const std::vector<Crossing> &crossings, Body body)
{
    const std::uint64_t started_ns = start_carrying(crossings);
    body();
    finish_carrying(crossings, started_ns);
}

// Bytes by name, as in "bytes_0_1", "bytes_0_h" (from device 0 to the host) and "link_gpu0_plx0".
// False if there is no such counter.
[[nodiscard]] bool link_counter(const char *name, std::uint64_t &bytes);
// Those that are not zero.
[[nodiscard]] std::vector<std::pair<std::string, std::uint64_t>> link_counters();

} // namespace hetcoll::emulated_gpu
