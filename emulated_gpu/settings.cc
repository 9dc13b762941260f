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
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hetcoll::emulated_gpu {
namespace {

constexpr long kMostDelayUs = 60'000'000;

// The number in an environment variable, or `otherwise` if it is unset or empty, or, with a
// message, if it is not a number from `least` to `most`.
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
bool runs_under_tsan() { return dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr; }

Uuid uuid_of_gpu(const Settings &s, int physical)
{
    Uuid uuid = s.machine->gpu(physical).uuid;
    const std::string_view node = s.node;
    if (node == "0") {
        return uuid;
    }
    std::uint32_t hash = 2166136261u; // FNV-1a
    for (const char letter : node) {
        hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
    }
    for (std::size_t i = 0; i < 4; ++i) {
        uuid[8 + i] = static_cast<std::uint8_t>(uuid[8 + i] ^ (hash >> (8 * i)));
    }
    return uuid;
}

Uuid uuid_of_device(const Settings &s, int physical)
{
    Uuid uuid = uuid_of_gpu(s, physical);
    if (s.mig > 1) {
        uuid[12] = static_cast<std::uint8_t>(uuid[12] ^ (physical % s.mig + 1));
    }
    return uuid;
}

// The device that an entry of CUDA_VISIBLE_DEVICES names, by number or by the start of its UUID;
// -1 for none.
int find_visible(const Settings &s, const std::string &entry)
{
    if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) {
        const std::string prefix = entry.substr(0, 3);
        for (int device = 0; device < s.physical_devices; ++device) {
            const bool is_instance = s.mig > 1;
            if (is_instance == (prefix == "MIG") &&
                print_uuid(prefix.c_str(), uuid_of_device(s, device)).starts_with(entry)) {
                return device;
            }
        }
        return -1;
    }
    char *end = nullptr;
    const long device = std::strtol(entry.c_str(), &end, 10);
    return end != entry.c_str() && *end == '\0' && device >= 0 && device < s.physical_devices
               ? static_cast<int>(device)
               : -1;
}

// As the real driver: takes the entries up to the first that names no device, and only one instance
// of divided GPUs.
void apply_visible_devices(Settings &s)
{
    const int most = s.mig > 1 ? 1 : kMaxDevices;
    const char *list = std::getenv("CUDA_VISIBLE_DEVICES");
    if (list == nullptr) {
        for (int i = 0; i < s.physical_devices; ++i) {
            s.physical_device[i] = i;
        }
        s.device_count = std::min(s.physical_devices, most);
        return;
    }
    for (std::string_view rest = list; s.device_count < most;) {
        const auto comma = std::min(rest.find(','), rest.size());
        const int device = find_visible(s, std::string(rest.substr(0, comma)));
        if (device < 0) {
            return;
        }
        s.physical_device[s.device_count++] = device;
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
}

// EMU_FAIL, unless EMU_FAIL_RANK names another rank of the MPI job than this process.
const char *faults_of_this_rank()
{
    const char *only = std::getenv("EMU_FAIL_RANK");
    if (only != nullptr && *only != '\0') {
        if (environment_number("EMU_FAIL_RANK", -1, 0, INT_MAX) < 0) {
            return nullptr; // that is not a rank
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
    "EMU_CHECK_FOOTPRINT",
    "EMU_COHERENT",
    "EMU_COLLAPSE",
    "EMU_DELAY_US",
    "EMU_DRIVER",
    "EMU_DRIVER_VERSION",
    "EMU_FAIL",
    "EMU_FAIL_RANK",
    "EMU_GDR",
    "EMU_GDR_FAIL",
    "EMU_GDR_ORDERING",
    "EMU_HOSTILE",
    "EMU_ID_STAYS",
    "EMU_KERNELS",
    "EMU_LEAKS",
    "EMU_LEAKS_FILE",
    "EMU_LINKS",
    "EMU_LINK_GBPS",
    "EMU_LINK_LATENCY_US",
    "EMU_LINK_SCALE",
    "EMU_MEM_MB",
    "EMU_MIG",
    "EMU_NODE",
    "EMU_NO_PEER",
    "EMU_NUM_DEVICES",
    "EMU_POISON",
    "EMU_POOLS",
    "EMU_SEED",
    "EMU_STEPPED",
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

// A test with a misspelt name would test nothing.
void name_unknown_variables()
{
    for (char **variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const std::string name(text.substr(0, text.find('=')));
        if (name.starts_with("EMU_") &&
            std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) {
            say("%s is not a setting of the emulated GPU, it changes nothing", name.c_str());
        }
    }
}

double environment_real(const char *name, double otherwise, double least, double most)
{
    const char *text = std::getenv(name);
    if (text == nullptr || *text == '\0') {
        return otherwise;
    }
    char *end = nullptr;
    const double value = std::strtod(text, &end);
    if (*end != '\0' || !(value >= least && value <= most)) {
        say("%s='%s' is not a number from %g to %g, %g is taken", name, text, least, most,
            otherwise);
        return otherwise;
    }
    return value;
}

// The machine of EMU_LINKS=FILE[:GPUS], or what is wrong with it.
std::string read_links(const std::string &value, Machine &machine)
{
    const auto colon = value.rfind(':');
    const bool has_list = colon != value.npos && colon + 1 < value.size() &&
                          value.find_first_not_of("0123456789,-", colon + 1) == value.npos;
    const std::string path = value.substr(0, has_list ? colon : value.npos);
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
        return path + " cannot be read";
    }
    std::string problem = parse_machine(text, machine);
    if (problem.empty() && has_list) {
        problem = keep_gpus(machine, value.substr(colon + 1));
    }
    return problem;
}

// EMU_MIG: the instances of GPU 0 come first, then those of GPU 1.
void divide_gpus(Settings &s, Machine &machine)
{
    const int most = s.physical_devices > 0 ? std::min(kMaxDevices / s.physical_devices, 7) : 1;
    s.mig = static_cast<int>(environment_number("EMU_MIG", 1, 1, most));
    s.physical_devices *= s.mig;
    std::vector<int> instances;
    for (const int gpu : machine.gpus) {
        instances.insert(instances.end(), static_cast<std::size_t>(s.mig), gpu);
    }
    machine.gpus = std::move(instances);
}

// The devices of the node and the links between them.
void read_machine(Settings &s)
{
    auto *machine = new Machine; // lasts as long as the settings
    const char *links = std::getenv("EMU_LINKS");
    if (links != nullptr && *links != '\0') {
        const std::string problem = read_links(links, *machine);
        s.has_links = problem.empty();
        if (!s.has_links) {
            say("EMU_LINKS=%s: %s; no link has a speed", links, problem.c_str());
        }
    }
    const int gpus = s.has_links ? static_cast<int>(machine->gpus.size()) : 1;
    s.physical_devices = static_cast<int>(
        environment_number("EMU_NUM_DEVICES", std::min(gpus, kMaxDevices), 0,
                           s.has_links ? std::min(gpus, kMaxDevices) : kMaxDevices));
    const double gbps = environment_real("EMU_LINK_GBPS", 0, 0, 1e5);
    if (!s.has_links) {
        *machine = pcie_box(s.physical_devices, gbps);
    } else if (gbps > 0) {
        say("EMU_LINK_GBPS changes nothing if EMU_LINKS is set");
    }
    machine->gpus.resize(static_cast<std::size_t>(s.physical_devices));
    divide_gpus(s, *machine);
    s.machine = machine;
    s.routes = new Routes(*machine);
    s.has_link_rates = s.has_links || gbps > 0;
    s.link_scale = environment_real("EMU_LINK_SCALE", 1, 1e-9, 1e9);
    s.link_latency_us = environment_number("EMU_LINK_LATENCY_US", 0, 0, kMostDelayUs);
    s.links_tag = std::hash<double>{}(s.link_scale);
    for (const LinkDirection &direction : s.routes->directions()) {
        s.links_tag = 31 * s.links_tag + std::hash<std::string>{}(direction.name) +
                      std::hash<double>{}(direction.gbps);
    }
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

// EMU_NO_PEER: "all", "sockets", or pairs as in "0-1,2-3".
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
    s.no_peer_over_sockets = std::strcmp(text, "sockets") == 0;
    if (s.no_peer_over_sockets) {
        return;
    }
    const char *next = text;
    for (int length = 0;; next += length + 1) {
        unsigned a = kMaxDevices, b = kMaxDevices;
        if (std::sscanf(next, "%2u-%2u%n", &a, &b, &length) != 2 || a >= kMaxDevices ||
            b >= kMaxDevices || (next[length] != ',' && next[length] != '\0')) {
            say("EMU_NO_PEER='%s' is neither all nor sockets nor pairs of devices as in 0-1,2-3; "
                "'%s' and what follows is ignored",
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
    read_machine(s);
    apply_visible_devices(s);
    s.memory_bytes = static_cast<std::size_t>(environment_number("EMU_MEM_MB", 2048, 1, 1 << 24))
                     << 20;
    s.multiprocessors = static_cast<int>(environment_number("EMU_SMS", 16, 1, 1024));
    s.compute_capability = static_cast<int>(environment_number("EMU_CC", 90, 30, 199));
    if (std::getenv("EMU_DRIVER_VERSION") != nullptr) {
        s.driver_version =
            static_cast<int>(environment_number("EMU_DRIVER_VERSION", CUDA_VERSION, 4000, 99990));
    }
    s.vmm = environment_flag("EMU_VMM", true);
    s.pools = environment_flag("EMU_POOLS", true);
    s.gpu_direct_rdma = environment_flag("EMU_GDR", false);
    s.coherent = environment_flag("EMU_COHERENT", false);
    s.rdma_ordering = static_cast<int>(
        environment_number("EMU_GDR_ORDERING", CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES, 0,
                           CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES));
    read_unreachable_peers(s);
}

Settings read_settings()
{
    Settings s{};
    name_unknown_variables();
    const char *node = std::getenv("EMU_NODE");
    s.node = node != nullptr && *node != '\0' ? node : "0";
    read_device(s);
    const bool tsan = runs_under_tsan();
    s.window_bytes =
        static_cast<std::size_t>(environment_number("EMU_WINDOW_GB", tsan ? 16 : 1024, 1, 1 << 15))
        << 30;
    s.window_place = window_place(tsan);
    s.reuse_addresses = environment_flag("EMU_VA_REUSE", true);
    s.id_stays = environment_flag("EMU_ID_STAYS", false);
    s.poison = environment_flag("EMU_POISON", true);
    s.check_footprint = environment_flag("EMU_CHECK_FOOTPRINT", false);
    s.collapse = environment_flag("EMU_COLLAPSE", true);
    s.strict = environment_flag("EMU_STRICT", false);
    s.trace = environment_flag("EMU_TRACE", false);
    s.print_calls = environment_flag("EMU_STATS", false);
    s.print_leaks = environment_flag("EMU_LEAKS", false);
    s.delay_us = environment_number("EMU_DELAY_US", 0, 0, kMostDelayUs);
    s.seed = static_cast<unsigned>(environment_number("EMU_SEED", 1, 0, UINT_MAX));
    s.stepped = environment_flag("EMU_STEPPED", false);
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
    if (physical_a == physical_b) {
        return true;
    }
    const Settings &s = settings();
    return s.mig == 1 && (s.unreachable[physical_a] >> physical_b & 1u) == 0 &&
           !s.routes->between(physical_a, physical_b).empty() &&
           !(s.no_peer_over_sockets && s.routes->crosses_sockets(physical_a, physical_b));
}

int ordinal_of(int physical_device, int otherwise)
{
    for (int ordinal = 0; ordinal < settings().device_count; ++ordinal) {
        if (settings().physical_device[ordinal] == physical_device) {
            return ordinal;
        }
    }
    return otherwise;
}

Uuid gpu_uuid(int physical) { return uuid_of_gpu(settings(), physical); }

Uuid device_uuid(int physical) { return uuid_of_device(settings(), physical); }

} // namespace hetcoll::emulated_gpu
