#include "test/fuzz/targets.h"

#include "bench/trace.h"
#include "engine/process/settings.h"
#include "engine/process/user_ops.h"
#include "sim/cluster_file.h"
#include "test/fuzz/control_page.h"
#include "test/fuzz/decode_fuzz.h"
#include "tools/info_trace.h"
#include "tools/place_file.h"
#include "topology/file.h"
#include "topology/record.h"
#include "topology_probe/hwloc_xml.h"
#include "tuning/measurements.h"
#include "tuning/table.h"
#include "tuning/table_file.h"

#include <hwloc.h>

#include <csignal>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {

void require(bool holds, const char *what)
{
    if (!holds) {
        std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
        std::abort();
    }
}

namespace {

using Bytes = std::span<const std::byte>;

std::string_view text_of(Bytes bytes)
{
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

// A text that is read and written and read again has not changed.
template <class Parse, class Write>
bool reads_what_it_writes(Bytes bytes, const Parse &parse, const Write &write)
{
    const auto first = parse(text_of(bytes));
    if (!first.ok()) {
        return false;
    }
    const std::string text = write(*first);
    const auto second = parse(std::string_view(text));
    require(second.ok(), "what is written can be read");
    require(write(*second) == text, "what is read is what was written");
    return true;
}

// The topologies that files name.
std::string shipped_folder()
{
    const char *const source = std::getenv("HETCOLL_SRCDIR");
    return std::string(source != nullptr ? source : ".") + "/topology/machines";
}

// For readers that want a path.
class MemoryFile {
public:
    explicit MemoryFile(Bytes bytes) : fd_(memfd_create("fuzz", MFD_CLOEXEC))
    {
        require(fd_ >= 0 &&
                    write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
                "memory for the input");
    }
    ~MemoryFile() { close(fd_); }
    MemoryFile(const MemoryFile &) = delete;
    MemoryFile &operator=(const MemoryFile &) = delete;

    [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

private:
    int fd_;
};

bool read_topology_file(Bytes bytes)
{
    return reads_what_it_writes(
        bytes, [](std::string_view text) { return parse_topology(text, "FILE"); }, write_topology);
}

// hwloc 2.9 itself crashes on some files that are no longer what it wrote, such as one whose NUMA
// node has lost its node set. Input that it survives goes on to our code.
bool hwloc_survives(const std::string &path)
{
    setenv("HWLOC_HIDE_ERRORS", "2", 1); // here and in our own reading after it
    const pid_t child = fork();
    require(child >= 0, "a process to try hwloc in");
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        hwloc_topology_t hwloc = nullptr;
        hwloc_topology_init(&hwloc);
        hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_ALL);
        if (hwloc_topology_set_xml(hwloc, path.c_str()) == 0) {
            hwloc_topology_load(hwloc);
        }
        _exit(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) != child) { // libFuzzer's alarm may come
        require(errno == EINTR, "its end");
    }
    return WIFEXITED(status);
}

// hwloc loads libxml2 with a plug-in and unloads both at the end. Then nothing points any more to
// what libxml2 keeps as long as a process lives, and LeakSanitizer calls that a leak.
void keep_libxml2()
{
    [[maybe_unused]] static void *const kept = dlopen("libxml2.so.2", RTLD_NOW | RTLD_NODELETE);
}

bool read_hwloc_file(Bytes bytes)
{
    keep_libxml2();
    const MemoryFile file(bytes);
    return hwloc_survives(file.path()) && topology_from_hwloc_xml(file.path()).ok();
}

bool read_cluster_file(Bytes bytes)
{
    const auto cluster = parse_cluster(text_of(bytes), "FILE", shipped_folder());
    if (!cluster.ok()) {
        return false;
    }
    require(cluster->node_count() >= 0 && cluster->node_count() <= kMostNodes, "number of nodes");
    for (int node = 0; node < cluster->node_count(); node += 1 + cluster->node_count() / 7) {
        (void)cluster->kind_of(node);
        require(cluster->rack_of(node) < cluster->rack_count(), "number of racks");
    }
    return true;
}

void look_up(const Table &table)
{
    for (int rule = 0; rule < table.rule_count(); ++rule) {
        (void)table.set_of(rule);
    }
    for (const std::size_t bytes : {0ul, 8ul, 8192ul, 64ul << 20}) {
        for (const int ranks : {1, 8}) {
            const int rule =
                table.find({.bytes = bytes, .ranks = ranks}, static_cast<AlgorithmSet>(~0u));
            require(rule >= -1 && rule < table.rule_count(), "number of a rule");
        }
    }
}

bool read_table_file(Bytes bytes)
{
    const auto table = parse_table(text_of(bytes), "FILE");
    if (!table.ok()) {
        return false;
    }
    const auto again = parse_table(write_table(*table), "FILE");
    require(again.ok() && table_hash(*again) == table_hash(*table), "a table written is the same");
    if (const auto any = Table::select(*table, {}); any.ok()) {
        look_up(*any);
    }
    for (const Machine &machine : table->machines) {
        if (const auto named = Table::select_named(*table, machine.name); named.ok()) {
            look_up(*named);
        }
    }
    return true;
}

bool read_measurements_file(Bytes bytes)
{
    return reads_what_it_writes(
        bytes, [](std::string_view text) { return parse_measurements(text, "FILE"); },
        write_measurements);
}

bool read_placement_file(Bytes bytes)
{
    return parse_place_file(text_of(bytes), "FILE", shipped_folder()).ok();
}

bool read_trace_file(Bytes bytes)
{
    const MemoryFile file(bytes);
    TraceRequest request;
    request.files = {file.path()};
    return show_trace(request).ok();
}

bool read_call_list(Bytes bytes)
{
    const MemoryFile file(bytes);
    return hetcoll::read_trace(file.path()).ok();
}

// Lines NAME=VALUE, a parameter each.
bool read_settings(Bytes bytes)
{
    hetcoll_settings settings = hetcoll_default_settings();
    std::vector<std::string> lines; // the settings point into them
    for (std::string_view rest = text_of(bytes); !rest.empty() && lines.size() < 64;) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        lines.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    for (const std::string &line : lines) {
        const std::size_t equals = std::min(line.find('='), line.size() - (line.empty() ? 0 : 1));
        const std::string_view name = std::string_view(line).substr(0, equals);
        const char *const value = line.c_str() + std::min(equals + 1, line.size());
        const auto set = [value](auto &parameter) {
            using Parameter = std::remove_reference_t<decltype(parameter)>;
            if constexpr (std::is_same_v<Parameter, const char *>) {
                parameter = value;
            } else if constexpr (std::is_same_v<Parameter, bool>) {
                parameter = *value == '1';
            } else {
                parameter = static_cast<Parameter>(std::strtoll(value, nullptr, 0));
            }
        };
#define HETCOLL_PARAMETER(kind, parameter, ...) \
    if (name == #parameter) {                   \
        set(settings.parameter);                \
    }
        HETCOLL_PARAMETERS
#undef HETCOLL_PARAMETER
    }
    const TopologyName file = split_topology_name(settings.topology_file);
    (void)parse_gpu_list(file.gpus);
    const UserOps user_ops(settings.user_ops, {}, {});
    require(user_ops.hash() != 0, "the hash of user-defined operations is never 0");
    return parse_settings(settings).ok();
}

// The records of a communicator's GPUs, one rank after the other.
bool read_records(Bytes bytes)
{
    std::vector<RankRecord> records(std::min<std::size_t>(bytes.size() / sizeof(RankRecord), 16));
    if (records.empty()) {
        return false;
    }
    std::memcpy(records.data(), bytes.data(), records.size() * sizeof(RankRecord));
    const auto placement = merge_records(records);
    if (!placement.ok()) {
        return false;
    }
    const auto ranks = records.size();
    require(placement->node_of.size() == ranks && placement->gpu_of.size() == ranks &&
                placement->local_rank.size() == ranks && placement->rank_on_gpu.size() == ranks,
            "every rank has a place");
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto node = static_cast<std::size_t>(placement->node_of[rank]);
        require(node < placement->nodes.size() &&
                    placement->nodes[node].ranks.at(static_cast<std::size_t>(
                        placement->local_rank[rank])) == static_cast<int>(rank),
                "a rank is on its node");
        require(placement->gpu_of[rank] == kNoGpu ||
                    static_cast<std::size_t>(placement->gpu_of[rank]) < placement->gpus.size(),
                "a rank's GPU is one of all");
    }
    (void)summarize(*placement);
    return true;
}

constexpr FuzzTarget kTargets[] = {
    {"topology", read_topology_file, 4096, "topology/machines"},
    {"hwloc_xml", read_hwloc_file, 65536, nullptr},
    {"cluster", read_cluster_file, 4096, "topology/machines"},
    {"table", read_table_file, 8192, nullptr},
    {"measurements", read_measurements_file, 8192, nullptr},
    {"placement", read_placement_file, 8192, "examples/placement"},
    {"trace", read_trace_file, 4096, nullptr},
    {"call_list", read_call_list, 4096, "bench/traces"},
    {"settings", read_settings, 1024, nullptr},
    {"records", read_records, 16 * sizeof(RankRecord), nullptr},
    {"aggregator", check_decode, 400, nullptr},
    {"control_page", read_control_page, 1024, nullptr},
};

} // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

} // namespace hetcoll::test
