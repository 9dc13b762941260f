#include "sim/cluster_file.h"

#include "topology/file.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace hetcoll {
namespace {

constexpr std::string_view kHeader = "hetcoll cluster 1";
constexpr double kMostUs = 1e6;

// NaN, which is in no range, if the word is not a number.
double parse_number(const std::string &word)
{
    double value = 0;
    const char *end = word.data() + word.size();
    const auto [rest, code] = std::from_chars(word.data(), end, value);
    return code == std::errc{} && rest == end ? value : std::nan("");
}

class ClusterParser {
public:
    ClusterParser(std::string path, const std::string &shipped_folder)
        : path_(std::move(path)), shipped_folder_(shipped_folder)
    {
    }

    Result<Cluster> parse(std::string_view text)
    {
        std::istringstream lines{std::string(text)};
        for (std::string line; std::getline(lines, line);) {
            ++line_;
            Status status = parse_line(line.substr(0, line.find('#')));
            if (!status.ok()) {
                return error(Errc::kInvalid, "%s:%d: %s", path_.c_str(), line_,
                             status.message().c_str());
            }
        }
        if (!header_seen_ || cluster_.kinds.empty()) {
            return error(Errc::kInvalid,
                         "%s: no nodes in it, write '%s' and a line 'nodes COUNT "
                         "TOPOLOGY'",
                         path_.c_str(), std::string(kHeader).c_str());
        }
        return std::move(cluster_);
    }

private:
    Status parse_line(const std::string &line)
    {
        std::istringstream stream(line);
        const std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
        if (words.empty()) {
            return {};
        }
        if (!header_seen_) {
            header_seen_ =
                words.size() == 3 && words[0] + " " + words[1] + " " + words[2] == kHeader;
            return header_seen_ ? Status()
                                : error(Errc::kInvalid, "the first line must be '%s'",
                                        std::string(kHeader).c_str());
        }
        if (words[0] == "name" && words.size() > 1) {
            cluster_.name = line.substr(line.find(words[1], line.find("name") + 4));
            return {};
        }
        if (words[0] == "nodes") {
            return parse_nodes(words);
        }
        if (words[0] == "network") {
            return parse_network(words);
        }
        return error(Errc::kInvalid, "'%s' cannot begin a line, write name, nodes or network",
                     words[0].c_str());
    }

    Status parse_nodes(const std::vector<std::string> &words)
    {
        NodeKind kind;
        const double count = words.size() > 1 ? parse_number(words[1]) : 0;
        if (words.size() % 2 == 0 || words.size() < 3 || !(count >= 1 && count <= kMostNodes) ||
            count != std::floor(count)) {
            return error(Errc::kInvalid,
                         "nodes: write 'nodes COUNT TOPOLOGY', COUNT from 1 to %d, then 'memory "
                         "GBPS' if the rate of the GPUs' memory is known, and 'adapters NIC,...' "
                         "if each GPU is bound to one",
                         kMostNodes);
        }
        kind.count = static_cast<int>(count);
        if (cluster_.node_count() + kind.count > kMostNodes) {
            return error(Errc::kInvalid, "more than %d nodes in all", kMostNodes);
        }
        Result<Topology> topology = read_topology(beside(words[2]), shipped_folder_);
        if (!topology.ok()) {
            return topology.take_status();
        }
        kind.topology = std::move(*topology);
        for (std::size_t i = 3; i < words.size(); i += 2) {
            Status status = words[i] == "memory" ? parse_memory(words[i + 1], kind)
                            : words[i] == "adapters"
                                ? bind_gpus(words[i + 1], kind.topology)
                                : error(Errc::kInvalid, "nodes: '%s' is not memory or adapters",
                                        words[i].c_str());
            if (!status.ok()) {
                return status;
            }
        }
        cluster_.kinds.push_back(std::move(kind));
        return {};
    }

    static Status parse_memory(const std::string &word, NodeKind &kind)
    {
        const double gbps = parse_number(word);
        if (!(gbps >= kMinLinkGbps && gbps <= kMaxLinkGbps)) {
            return error(Errc::kInvalid, "memory '%s' is not a rate in GB/s", word.c_str());
        }
        kind.memory_gbps = gbps;
        return {};
    }

    // By GPU, in order.
    static Status bind_gpus(const std::string &list, Topology &topology)
    {
        std::istringstream names(list);
        std::size_t bound = 0;
        const std::vector<int> gpus = topology.gpus();
        for (std::string name; std::getline(names, name, ','); ++bound) {
            if (topology.find_nic(name) == kNoVertex) {
                return error(Errc::kInvalid, "adapters: '%s' is no nic of the topology",
                             name.c_str());
            }
            if (bound < gpus.size()) {
                topology.vertices[static_cast<std::size_t>(gpus[bound])].adapter = name;
            }
        }
        return bound == gpus.size()
                   ? Status()
                   : error(Errc::kInvalid, "adapters: %zu names, write one for each of %zu GPUs",
                           bound, gpus.size());
    }

    // The file of that name in the folder of the cluster's, if there is one.
    [[nodiscard]] std::string beside(const std::string &name) const
    {
        const std::string folder = std::filesystem::path(path_).parent_path().string();
        const TopologyName parts = split_topology_name(name);
        const std::string file = find_topology_file(parts.file, folder.empty() ? "." : folder);
        return parts.gpus.empty() ? file : file + ":" + parts.gpus;
    }

    Status parse_network(const std::vector<std::string> &words)
    {
        Network &network = cluster_.network;
        struct Field {
            const char *name;
            double least, most;
            double *real;
            int *whole;
        };
        const Field fields[] = {
            {"latency", 0, kMostUs, &network.latency_us, nullptr},
            {"rack", 1, kMostNodes, nullptr, &network.rack_nodes},
            {"uplinks", 1, kMostNodes, nullptr, &network.uplinks},
            {"gbps", kMinLinkGbps, kMaxLinkGbps, &network.uplink_gbps, nullptr},
            {"middle_latency", 0, kMostUs, &network.middle_latency_us, nullptr},
        };
        for (std::size_t i = 1; i < words.size(); i += 2) {
            const double value = i + 1 < words.size() ? parse_number(words[i + 1]) : std::nan("");
            bool taken = false;
            for (const Field &field : fields) {
                if (words[i] != field.name || !(value >= field.least && value <= field.most)) {
                    continue;
                }
                taken = true;
                if (field.real != nullptr) {
                    *field.real = value;
                } else {
                    *field.whole = static_cast<int>(value);
                    taken = *field.whole == value;
                }
            }
            if (!taken) {
                return error(Errc::kInvalid,
                             "network: '%s' is not one of latency US, rack NODES, uplinks COUNT, "
                             "gbps RATE and middle_latency US, or has no value in its range",
                             words[i].c_str());
            }
        }
        if (network.rack_nodes > 0 && (network.uplinks == 0 || network.uplink_gbps == 0)) {
            return error(Errc::kInvalid, "network: a rack needs 'uplinks COUNT gbps RATE'");
        }
        return {};
    }

    std::string path_;
    const std::string &shipped_folder_;
    int line_ = 0;
    bool header_seen_ = false;
    Cluster cluster_;
};

// By the first line that is not a comment.
bool is_cluster(const std::string &text)
{
    std::istringstream lines(text);
    std::string line;
    while (std::getline(lines, line) && (line.empty() || line[0] == '#')) {
    }
    return line.starts_with(kHeader);
}

Result<Cluster> cut(Cluster cluster, int nodes, const std::string &name)
{
    if (nodes > cluster.node_count()) {
        return error(Errc::kInvalid,
                     "%s has %d nodes, --nodes asks for %d: take fewer, or write a "
                     "cluster file with more",
                     name.c_str(), cluster.node_count(), nodes);
    }
    int left = nodes;
    for (NodeKind &kind : cluster.kinds) {
        kind.count = std::min(kind.count, left);
        left -= kind.count;
    }
    std::erase_if(cluster.kinds, [](const NodeKind &kind) { return kind.count == 0; });
    return cluster;
}

} // namespace

Result<Cluster> parse_cluster(std::string_view text, const std::string &path,
                              const std::string &shipped_folder)
{
    return ClusterParser(path, shipped_folder).parse(text);
}

Result<Cluster> read_cluster(const std::string &name, int nodes, const std::string &shipped_folder)
{
    const std::filesystem::path in_folder =
        std::filesystem::path(shipped_folder) / (name + ".cluster");
    std::error_code code;
    const bool here = std::filesystem::is_regular_file(name, code);
    const bool known = !here && std::filesystem::is_regular_file(in_folder, code);
    const std::string path = known ? in_folder.string() : name;
    std::string text;
    if (here || known) { // reading a folder would throw
        std::ifstream file(path, std::ios::binary);
        text.assign(std::istreambuf_iterator<char>(file), {});
    }
    if (known || is_cluster(text)) {
        Result<Cluster> cluster = parse_cluster(text, path, shipped_folder);
        return cluster.ok() && nodes > 0 ? cut(std::move(*cluster), nodes, name)
                                         : std::move(cluster);
    }
    Result<Topology> topology = read_topology(name, shipped_folder);
    if (!topology.ok()) {
        return topology.take_status();
    }
    Cluster cluster;
    cluster.name = topology->machine;
    cluster.kinds.push_back({.topology = std::move(*topology), .count = std::max(nodes, 1)});
    return cluster;
}

} // namespace hetcoll
