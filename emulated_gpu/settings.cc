#include "emulated_gpu/settings.h"

#include <cuda.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hetcoll::emulated_gpu {
namespace {

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

Settings read_settings()
{
    Settings s{};
    s.physical_devices = static_cast<int>(
        std::clamp<long>(environment_number("EMU_NUM_DEVICES", 1), 0, kMaxDevices));
    apply_visible_devices(s);
    s.memory_bytes = static_cast<std::size_t>(environment_number("EMU_MEM_MB", 2048)) << 20;
    const bool tsan = runs_under_tsan();
    s.window_bytes = static_cast<std::size_t>(
                         std::max(1L, environment_number("EMU_WINDOW_GB", tsan ? 16 : 1024)))
                     << 30;
    s.multiprocessors = static_cast<int>(environment_number("EMU_SMS", 16));
    s.compute_capability = static_cast<int>(environment_number("EMU_CC", 90));
    s.driver_version = static_cast<int>(environment_number("EMU_DRIVER_VERSION", CUDA_VERSION));
    s.vmm = environment_number("EMU_VMM", 1) != 0;
    s.pools = environment_number("EMU_POOLS", 1) != 0;
    s.gpu_direct_rdma = environment_number("EMU_GDR", 0) != 0;
    s.reuse_addresses = environment_number("EMU_VA_REUSE", 1) != 0;
    s.id_stays = environment_number("EMU_ID_STAYS", 0) != 0;
    s.poison = environment_number("EMU_POISON", 1) != 0;
    s.collapse = environment_number("EMU_COLLAPSE", 1) != 0;
    s.strict = environment_number("EMU_STRICT", 0) != 0;
    s.trace = environment_number("EMU_TRACE", 0) != 0;
    s.delay_us = environment_number("EMU_DELAY_US", 0);
    s.seed = static_cast<unsigned>(environment_number("EMU_SEED", 1));
    const char *speed = std::getenv("EMU_LINK_GBPS");
    s.link_bytes_per_ns = speed != nullptr ? std::max(0.0, std::atof(speed)) : 0;
    s.link_latency_us = environment_number("EMU_LINK_LATENCY_US", 0);
    const char *node = std::getenv("EMU_NODE");
    s.node = node != nullptr && *node != '\0' ? node : "0";
    const char *place = std::getenv("EMU_VA");
    s.window_place = place != nullptr || !tsan ? place : "any";
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

long environment_number(const char *name, long otherwise)
{
    const char *text = std::getenv(name);
    return text != nullptr && *text != '\0' ? std::strtol(text, nullptr, 0) : otherwise;
}

bool peers_reach(int physical_a, int physical_b)
{
    const char *forbidden = std::getenv("EMU_NO_PEER"); // "all" or "0-1,2-3"
    if (physical_a == physical_b || forbidden == nullptr) {
        return true;
    }
    if (std::strcmp(forbidden, "all") == 0) {
        return false;
    }
    char pair[32], reversed[32];
    std::snprintf(pair, sizeof pair, "%d-%d", physical_a, physical_b);
    std::snprintf(reversed, sizeof reversed, "%d-%d", physical_b, physical_a);
    return std::strstr(forbidden, pair) == nullptr && std::strstr(forbidden, reversed) == nullptr;
}

} // namespace hetcoll::emulated_gpu
