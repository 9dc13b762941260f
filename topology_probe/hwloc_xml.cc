#include "topology_probe/hwloc_xml.h"

#include "topology/file.h"
#include "topology_probe/hwloc_tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace hetcoll {
namespace {

// The first bytes of a file; none if it cannot be read, or is a pipe, which would block.
std::string read_beginning(const std::string &path)
{
    std::array<char, 256> text{};
    struct stat info {};
    if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return {};
    }
    std::FILE *const file = std::fopen(path.c_str(), "re");
    if (file == nullptr) {
        return {};
    }
    const std::size_t length = std::fread(text.data(), 1, text.size(), file);
    std::fclose(file);
    return {text.data(), length};
}

} // namespace

bool is_hwloc_xml(std::string_view text) noexcept
{
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark)) {
        text.remove_prefix(kByteOrderMark.size());
    }
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    return text.starts_with("<?xml") || text.starts_with("<!DOCTYPE topology") ||
           text.starts_with("<topology");
}

Result<Topology> topology_from_hwloc_xml(const std::string &path)
{
    auto tree = read_hwloc_xml(path);
    if (!tree.ok()) {
        return tree.take_status();
    }
    auto topology = to_topology(*tree);
    if (!topology.ok()) {
        return error(Errc::kInvalid, "%s: %s", path.c_str(), topology.status().message().c_str());
    }
    if (topology->gpus().empty()) {
        return error(Errc::kInvalid,
                     "%s: no NVIDIA GPU in it, export the machine with lstopo --whole-io %s",
                     path.c_str(), path.c_str());
    }
    return topology;
}

Result<Topology> read_any_topology(const std::string &name, const std::string &shipped_folder)
{
    const TopologyName parts = split_topology_name(name);
    const std::string path = find_topology_file(parts.file, shipped_folder);
    if (!is_hwloc_xml(read_beginning(path))) {
        return read_topology(name, shipped_folder);
    }
    auto topology = topology_from_hwloc_xml(path);
    if (!topology.ok() || parts.gpus.empty()) {
        return topology;
    }
    auto gpus = parse_gpu_list(parts.gpus);
    if (!gpus.ok()) {
        return gpus.take_status();
    }
    auto part = fragment(*topology, *gpus);
    if (!part.ok()) {
        return error(Errc::kInvalid, "%s: %s", path.c_str(), part.status().message().c_str());
    }
    return part;
}

} // namespace hetcoll
