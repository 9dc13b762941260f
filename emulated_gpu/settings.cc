#include "emulated_gpu/settings.h"

#include "emulated_gpu/report.h"

#include <cuda.h>

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace hetcoll::emulated_gpu {
namespace {

constexpr long kMostDelayUs = 60'000'000;

// The number in an environment variable, or `otherwise` where it is unset or empty, or, with a
// message, not a number from `least` to `most`.
long environment_number(const char *name, long otherwise, long least, long most)
{
    const char *text = std::getenv(name);
    if (text == nullptr || *text == '\0') {
        return otherwise;
    }
    char *end = nullptr;
    const long value = std::strtol(text, &end, 0);
    if (*end != '\0' || value < least || value > most) {
        say("%s='%s' is not a number from %ld to %ld, %ld is taken", name, text, least, most,
            otherwise);
        return otherwise;
    }
    return value;
}

bool environment_flag(const char *name, bool otherwise)
{
    return environment_number(name, otherwise, 0, 1) != 0;
}

// ThreadSanitizer leaves little address space and chooses the places itself.
bool runs_under_tsan()
{
    return dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

// As the real driver: the ordinals up to the first that names no device.
void apply_visible_devices(Settings &s)
{
    const char *list = std::getenv("CUDA_VISIBLE_DEVICES");
    if (list == nullptr) {
        for (int i = 0; i < s.physical_devices; ++i) {
            s.physical_device[i] = i;
        }
        s.device_count = s.physical_devices;
        return;
    }
    while (s.device_count < kMaxDevices) {
        char *end = nullptr;
        const long device = std::strtol(list, &end, 10);
        if (end == list || device < 0 || device >= s.physical_devices) {
            return;
        }
        s.physical_device[s.device_count++] = static_cast<int>(device);
        if (*end != ',') {
            return;
        }
        list = end + 1;
    }
}

// EMU_FAIL, unless EMU_FAIL_RANK names another rank of the MPI job than this process.
const char *faults_of_this_rank()
{
    const char *only = std::getenv("EMU_FAIL_RANK");
    if (only != nullptr && *only != '\0') {
        if (environment_number("EMU_FAIL_RANK", -1, 0, INT_MAX) < 0) {
            return nullptr; // that was no rank
        }
        const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
        if (rank == nullptr) {
            rank = std::getenv("PMIX_RANK");
        }
        if (rank == nullptr || std::strcmp(rank, only) != 0) {
            return nullptr;
        }
    }
    return std::getenv("EMU_FAIL");
}

constexpr const char *kNames[] = {
    "EMU_CC",
    "EMU_COLLAPSE",
    "EMU_DELAY_US",
    "EMU_DRIVER_VERSION",
    "EMU_FAIL",
    "EMU_FAIL_RANK",
    "EMU_GDR",
    "EMU_ID_STAYS",
    "EMU_KERNELS",
    "EMU_LEAKS",
    "EMU_LEAKS_FILE",
    "EMU_LINK_GBPS",
    "EMU_LINK_LATENCY_US",
    "EMU_MEM_MB",
    "EMU_NODE",
    "EMU_NO_PEER",
    "EMU_NUM_DEVICES",
    "EMU_POISON",
    "EMU_POOLS",
    "EMU_SEED",
    "EMU_SMS",
    "EMU_STATS",
    "EMU_STATS_FILE",
    "EMU_STRICT",
    "EMU_TRACE",
    "EMU_VA",
    "EMU_VA_REUSE",
    "EMU_VMM",
    "EMU_WINDOW_GB",
};

// A misspelt name would be a test of nothing.
void name_unknown_variables()
{
    for (char **variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const std::string name(text.substr(0, text.find('=')));
        if (name.starts_with("EMU_") &&
            std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) {
            say("%s is no setting of the emulated GPU, it changes nothing", name.c_str());
        }
    }
}

double link_speed()
{
    const char *text = std::getenv("EMU_LINK_GBPS");
    if (text == nullptr || *text == '\0') {
        return 0;
    }
    char *end = nullptr;
    const double speed = std::strtod(text, &end);
    if (*end != '\0' || !(speed >= 0)) {
        say("EMU_LINK_GBPS='%s' is not a number from 0 up, copies are not slowed down", text);
        return 0;
    }
    return speed;
}

const char *window_place(bool tsan)
{
    const char *place = std::getenv("EMU_VA");
    if (place == nullptr || *place == '\0') {
        return tsan ? "any" : nullptr;
    }
    if (std::strcmp(place, "same") != 0 && std::strcmp(place, "any") != 0) {
        say("EMU_VA='%s' is neither same nor any, every process has other addresses", place);
    }
    return place;
}

// EMU_NO_PEER: "all", or pairs as in "0-1,2-3".
void read_unreachable_peers(Settings &s)
{
    const char *text = std::getenv("EMU_NO_PEER");
    if (text == nullptr || *text == '\0') {
        return;
    }
    if (std::strcmp(text, "all") == 0) {
        std::fill(std::begin(s.unreachable), std::end(s.unreachable), ~0u);
        return;
    }
    const char *next = text;
    for (int length = 0;; next += length + 1) {
        unsigned a = kMaxDevices, b = kMaxDevices;
        if (std::sscanf(next, "%2u-%2u%n", &a, &b, &length) != 2 || a >= kMaxDevices ||
            b >= kMaxDevices || (next[length] != ',' && next[length] != '\0')) {
            say("EMU_NO_PEER='%s' is neither all nor pairs of devices as in 0-1,2-3; '%s' and what "
                "follows is ignored",
                text, next);
            return;
        }
        s.unreachable[a] |= 1u << b;
        s.unreachable[b] |= 1u << a;
        if (next[length] == '\0') {
            return;
        }
    }
}

void read_device(Settings &s)
{
    s.physical_devices = static_cast<int>(environment_number("EMU_NUM_DEVICES", 1, 0, kMaxDevices));
    apply_visible_devices(s);
    s.memory_bytes = static_cast<std::size_t>(environment_number("EMU_MEM_MB", 2048, 1, 1 << 24))
                     << 20;
    s.multiprocessors = static_cast<int>(environment_number("EMU_SMS", 16, 1, 1024));
    s.compute_capability = static_cast<int>(environment_number("EMU_CC", 90, 30, 199));
    s.driver_version =
        static_cast<int>(environment_number("EMU_DRIVER_VERSION", CUDA_VERSION, 4000, 99990));
    s.vmm = environment_flag("EMU_VMM", true);
    s.pools = environment_flag("EMU_POOLS", true);
    s.gpu_direct_rdma = environment_flag("EMU_GDR", false);
    s.link_bytes_per_ns = link_speed();
    s.link_latency_us = environment_number("EMU_LINK_LATENCY_US", 0, 0, kMostDelayUs);
    read_unreachable_peers(s);
}

Settings read_settings()
{
    Settings s{};
    name_unknown_variables();
    read_device(s);
    const bool tsan = runs_under_tsan();
    s.window_bytes =
        static_cast<std::size_t>(environment_number("EMU_WINDOW_GB", tsan ? 16 : 1024, 1, 1 << 15))
        << 30;
    s.window_place = window_place(tsan);
    s.reuse_addresses = environment_flag("EMU_VA_REUSE", true);
    s.id_stays = environment_flag("EMU_ID_STAYS", false);
    s.poison = environment_flag("EMU_POISON", true);
    s.collapse = environment_flag("EMU_COLLAPSE", true);
    s.strict = environment_flag("EMU_STRICT", false);
    s.trace = environment_flag("EMU_TRACE", false);
    s.print_calls = environment_flag("EMU_STATS", false);
    s.print_leaks = environment_flag("EMU_LEAKS", false);
    s.delay_us = environment_number("EMU_DELAY_US", 0, 0, kMostDelayUs);
    s.seed = static_cast<unsigned>(environment_number("EMU_SEED", 1, 0, UINT_MAX));
    const char *node = std::getenv("EMU_NODE");
    s.node = node != nullptr && *node != '\0' ? node : "0";
    s.kernels = std::getenv("EMU_KERNELS");
    s.faults = faults_of_this_rank();
    return s;
}

} // namespace

const Settings &settings()
{
    static const Settings read = read_settings();
    return read;
}

bool peers_reach(int physical_a, int physical_b)
{
    return physical_a == physical_b || (settings().unreachable[physical_a] >> physical_b & 1u) == 0;
}

} // namespace hetcoll::emulated_gpu
