#include "emulated_gpu/links.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/link_clock.h"
#include "emulated_gpu/machine.h"
#include "emulated_gpu/node.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

namespace hetcoll::emulated_gpu {
namespace {

constexpr int kPlaces = kMaxDevices + 1; // devices, then the host

// The turn of this stream thread's work; late wake-ups do not move it.
struct Turn {
    std::uint64_t submitted_ns, start_ns, end_ns;
};
constinit thread_local Turn turn{};

std::size_t place_index(int device)
{
    return static_cast<std::size_t>(device == kHostMemory ? kMaxDevices : device);
}

// The bytes that this process moved.
struct Moved {
    std::array<std::atomic<std::uint64_t>, kPlaces * kPlaces> between{};
    std::array<std::atomic<std::uint64_t>, kMaxLinkDirections> over{};
};
constinit Moved moved;

std::atomic<std::uint64_t> &moved_between(int from, int to)
{
    return moved.between[place_index(from) * kPlaces + place_index(to)];
}

std::string pair_name(int from, int to)
{
    const auto name = [](int device) {
        return device == kHostMemory ? std::string("h") : std::to_string(device);
    };
    return "bytes_" + name(from) + "_" + name(to);
}

void add_to_counters(const Crossing &crossing)
{
    moved_between(crossing.from, crossing.to).fetch_add(crossing.bytes, std::memory_order_relaxed);
    for (const int direction : settings().routes->between(crossing.from, crossing.to)) {
        moved.over[static_cast<std::size_t>(direction)].fetch_add(crossing.bytes,
                                                                  std::memory_order_relaxed);
    }
}

std::vector<LinkOfPath> path_of(const Crossing &crossing)
{
    std::vector<LinkOfPath> path;
    if (!settings().has_link_rates) {
        return path;
    }
    for (const int direction : settings().routes->between(crossing.from, crossing.to)) {
        const double gbps =
            settings().routes->directions()[static_cast<std::size_t>(direction)].gbps;
        path.push_back({link_clock(direction), gbps * settings().link_scale}); // 1e9 bytes a second
    }
    return path;
}

// Not late by the kernel's usual 50 us.
void sleep_until(std::uint64_t time_ns)
{
    static thread_local const int precise = prctl(PR_SET_TIMERSLACK, 1);
    static_cast<void>(precise);
    const timespec until{static_cast<time_t>(time_ns / 1000000000),
                         static_cast<long>(time_ns % 1000000000)};
    while (now_ns() < time_ns) {
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
}

void wait_for_links(const std::vector<Crossing> &crossings, std::uint64_t started_ns)
{
    // A launch's latency passes while earlier work of its stream still runs.
    const std::uint64_t first_byte_ns =
        std::max(started_ns,
                 turn.submitted_ns + static_cast<std::uint64_t>(settings().link_latency_us) * 1000);
    std::vector<Transfer> transfers;
    for (const Crossing &crossing : crossings) {
        transfers.emplace_back(path_of(crossing), crossing.bytes, first_byte_ns);
    }
    const auto comes_first = [](const Transfer &a, const Transfer &b) {
        return a.is_booked() != b.is_booked() ? b.is_booked() : a.passed_ns() < b.passed_ns();
    };
    std::uint64_t end_ns = first_byte_ns;
    while (true) {
        Transfer &next = *std::min_element(transfers.begin(), transfers.end(), comes_first);
        if (next.is_booked()) {
            break;
        }
        sleep_until(next.passed_ns());
        next.book();
        end_ns = std::max(end_ns, next.passed_ns());
    }
    turn.end_ns = end_ns;
    sleep_until(end_ns);
}

} // namespace

void start_turn(std::uint64_t submitted_ns)
{
    turn.submitted_ns = submitted_ns;
    turn.start_ns = std::max(submitted_ns, turn.end_ns);
    turn.end_ns = 0;
}

void end_turn()
{
    if (turn.end_ns == 0) {
        turn.end_ns = now_ns();
    }
}

std::uint64_t start_carrying(const std::vector<Crossing> &crossings)
{
    const bool takes_time = settings().has_link_rates || settings().link_latency_us > 0;
    return takes_time && !crossings.empty() ? turn.start_ns : 0;
}

void finish_carrying(const std::vector<Crossing> &crossings, std::uint64_t started_ns)
{
    for (const Crossing &crossing : crossings) {
        add_to_counters(crossing);
    }
    if (started_ns != 0) {
        wait_for_links(crossings, started_ns);
    }
}

bool link_counter(const char *name, std::uint64_t &bytes)
{
    const std::string_view text = name;
    if (!text.starts_with("bytes_") && !text.starts_with("link_")) {
        return false;
    }
    const int devices = settings().physical_devices;
    for (int from = kHostMemory; from < devices; ++from) {
        for (int to = kHostMemory; to < devices; ++to) {
            if (from != to && pair_name(from, to) == text) {
                bytes = moved_between(from, to).load(std::memory_order_relaxed);
                return true;
            }
        }
    }
    const auto &directions = settings().routes->directions();
    for (std::size_t i = 0; i < directions.size(); ++i) {
        if ("link_" + directions[i].name == text) {
            bytes = moved.over[i].load(std::memory_order_relaxed);
            return true;
        }
    }
    return false;
}

std::vector<std::pair<std::string, std::uint64_t>> link_counters()
{
    std::vector<std::pair<std::string, std::uint64_t>> all;
    const auto add = [&all](const std::string &name, std::uint64_t bytes) {
        if (bytes > 0) {
            all.emplace_back(name, bytes);
        }
    };
    const int devices = settings().physical_devices;
    for (int from = kHostMemory; from < devices; ++from) {
        for (int to = kHostMemory; to < devices; ++to) {
            add(pair_name(from, to), moved_between(from, to).load());
        }
    }
    const auto &directions = settings().routes->directions();
    for (std::size_t i = 0; i < directions.size(); ++i) {
        add("link_" + directions[i].name, moved.over[i].load());
    }
    return all;
}

} // namespace hetcoll::emulated_gpu

EMULATED_GPU_EXPORT std::uint64_t emulated_gpu_link_bytes(int from, int to)
{
    using namespace hetcoll::emulated_gpu;
    const auto exists = [](int place) {
        return place >= kHostMemory && place < settings().physical_devices;
    };
    return exists(from) && exists(to) ? moved_between(from, to).load() : 0;
}
