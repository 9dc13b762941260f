#include "topology/print.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

namespace hetcoll {
namespace {

const char *distance_word(Distance distance)
{
    switch (distance) {
    case Distance::kPix: return "PIX";
    case Distance::kPxb: return "PXB";
    case Distance::kPhb: return "PHB";
    case Distance::kSys: return "SYS";
    }
    return "?";
}

using Row = std::vector<std::string>;

// Columns as wide as their widest cell: the first one to the left, the others to the right. What
// is wider than a terminal is several tables below each other, each with the first column. Then
// column `split` begins one.
std::string print_table(const std::vector<Row> &rows, std::size_t split)
{
    constexpr std::size_t kMostWidth = 100;
    std::vector<std::size_t> width(rows[0].size());
    for (const Row &row : rows) {
        for (std::size_t c = 0; c < row.size(); ++c) {
            width[c] = std::max(width[c], row[c].size());
        }
    }
    const auto first_columns = [&width](std::size_t count, std::size_t gap) {
        return std::accumulate(width.begin(), width.begin() + static_cast<std::ptrdiff_t>(count),
                               (count - 1) * gap);
    };
    const std::size_t first = split > 0 ? split : width.size();
    const std::size_t gap = first_columns(first, 2) <= kMostWidth ? 2 : 1;
    const bool fits = first_columns(width.size(), gap) <= kMostWidth;
    std::string text;
    for (std::size_t begin = 1; begin < width.size();) {
        std::size_t end = begin, used = width[0];
        while (end < width.size() && (end == begin || used + gap + width[end] <= kMostWidth) &&
               (end == begin || end != split || fits)) {
            used += gap + width[end++];
        }
        text += begin == 1 ? "" : "\n";
        for (const Row &row : rows) {
            std::string line = row[0] + std::string(width[0] - row[0].size(), ' ');
            for (std::size_t c = begin; c < end; ++c) {
                line += std::string(gap + width[c] - row[c].size(), ' ') + row[c];
            }
            text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
        }
        begin = end;
    }
    return text;
}

std::string print_legend(const std::set<std::string> &words)
{
    struct Meaning {
        const char *word, *text;
    };
    constexpr Meaning kMeanings[] = {
        {"NV", "NVn   n NVLinks, direct"},
        {"NVS", "NVSn  n NVLinks of each, through NVSwitches"},
        {"PIX", "PIX   one PCIe switch"},
        {"PXB", "PXB   several PCIe switches"},
        {"PHB", "PHB   PCIe through a CPU"},
        {"SYS", "SYS   PCIe and the link between CPUs"},
        {"-", "-     no way"},
    };
    std::string text;
    for (const Meaning &meaning : kMeanings) {
        text += words.contains(meaning.word) ? std::string(meaning.text) + "\n" : "";
    }
    return text;
}

} // namespace

std::string print_route(const Route &route)
{
    switch (route.kind) {
    case RouteKind::kNone: return "-";
    case RouteKind::kNvlink: return "NV" + std::to_string(route.nvlinks);
    case RouteKind::kNvSwitch: return "NVS" + std::to_string(route.nvlinks);
    case RouteKind::kPcie: return distance_word(route.distance);
    }
    return "?";
}

std::string print_gbps(double gbps)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.4g", gbps);
    return text;
}

std::string print_matrix(const Topology &topology)
{
    const std::vector<int> gpus = topology.gpus(), nics = topology.of_kind(VertexKind::kNic);
    std::vector<int> columns = gpus;
    columns.insert(columns.end(), nics.begin(), nics.end());

    std::vector<Row> kinds(1), rates(1);
    std::set<std::string> words;
    kinds[0].emplace_back("");
    rates[0].emplace_back("GB/s");
    for (const int column : columns) {
        const Vertex &vertex = topology.vertices[column];
        kinds[0].push_back(vertex.name);
        if (vertex.kind == VertexKind::kGpu) {
            rates[0].push_back(vertex.name);
        }
    }
    kinds[0].insert(kinds[0].end(), {"NUMA", "bus id"});
    rates[0].emplace_back("host");
    for (const int gpu : gpus) {
        const Vertex &vertex = topology.vertices[gpu];
        Row kind = {vertex.name}, rate = {vertex.name};
        for (const int other : columns) {
            const Route route = find_route(topology, gpu, other);
            const std::string word = print_route(route);
            kind.push_back(gpu == other ? "X" : word);
            if (gpu != other) {
                words.insert(word.substr(0, word.find_first_of("0123456789")));
            }
            if (topology.vertices[other].kind == VertexKind::kGpu) {
                rate.push_back(gpu == other ? "X" : print_gbps(route.gbps));
            }
        }
        kind.push_back(vertex.numa == kUnknownNuma ? "-" : std::to_string(vertex.numa));
        kind.push_back(print_bus_id(vertex.bus));
        rate.push_back(print_gbps(find_host_route(topology, gpu).gbps));
        kinds.push_back(std::move(kind));
        rates.push_back(std::move(rate));
    }
    return print_table(kinds, 1 + gpus.size()) + "\n" + print_table(rates, 0) + "\n" +
           print_legend(words) +
           "host  memory of the nearest CPU, pinned; every rate is one way, alone\n";
}

} // namespace hetcoll
