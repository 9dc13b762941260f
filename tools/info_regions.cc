#include "tools/info_regions.h"

#include "measure/json_document.h"
#include "tools/call_setup.h"
#include "tools/info_explain.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kMostGpus = 256, kMostRanks = 16384; // that a price does not take long for
constexpr std::size_t kWidth = 100;

// Sizes that one algorithm serves, by one source, however its chunks and segments change in there.
struct Region {
    std::size_t first_bytes;
    Algorithm algorithm;
    ChoiceSource source;
};

struct Row { // of the table
    int nodes, first_ranks, last_ranks;
    std::vector<std::string> cells;
    std::string note; // about the tuning table
};

std::vector<Region> regions_of(CallSetup &setup)
{
    std::vector<Region> regions;
    for (const auto &[first_bytes, choice] : served_ranges(setup)) {
        if (regions.empty() || regions.back().algorithm != choice.algorithm ||
            regions.back().source != choice.source) {
            regions.push_back({first_bytes, choice.algorithm, choice.source});
        }
    }
    return regions;
}

// "25.5K": three digits.
std::string print_rounded(std::size_t bytes)
{
    auto value = static_cast<double>(bytes);
    const char *unit = "";
    for (const char *const larger : {"K", "M", "G"}) {
        if (value >= 1024) {
            value /= 1024;
            unit = larger;
        }
    }
    return format(value < 999.5 ? "%.3g%s" : "%.0f%s", value, unit);
}

std::vector<std::string> cells_of(const std::vector<Region> &regions)
{
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < regions.size(); ++i) {
        std::string cell = algorithm_name(regions[i].algorithm);
        cell += regions[i].source == ChoiceSource::kTable ? "*" : "";
        if (i + 1 < regions.size()) {
            cell += " " + print_rounded(regions[i + 1].first_bytes - 1);
        }
        cells.push_back(std::move(cell));
    }
    return cells;
}

Json row_json(const CallSetup &setup, const std::vector<Region> &regions)
{
    Json json = {{"ranks", setup.query.ranks},
                 {"nodes", setup.query.nodes},
                 {"note", setup.by.note},
                 {"regions", Json::array()}};
    for (const Region &region : regions) {
        json["regions"].push_back({{"first_bytes", region.first_bytes},
                                   {"algorithm", algorithm_name(region.algorithm)},
                                   {"source", source_name(region.source)}});
    }
    return json;
}

// Adds the row, or its ranks to the row before it if that says the same.
void add_row(Row row, std::vector<Row> &rows)
{
    if (!rows.empty() && rows.back().nodes == row.nodes && rows.back().cells == row.cells &&
        rows.back().note == row.note) {
        rows.back().last_ranks = row.last_ranks;
    } else {
        rows.push_back(std::move(row));
    }
}

std::string print_ranks(const Row &row)
{
    const std::string first = std::to_string(row.first_ranks);
    return row.first_ranks == row.last_ranks ? first : first + "-" + std::to_string(row.last_ranks);
}

std::string print_notes(const std::vector<Row> &rows)
{
    std::string text;
    for (std::size_t i = 0; i < rows.size();) {
        std::size_t end = i + 1;
        while (end < rows.size() && rows[end].note == rows[i].note) {
            ++end;
        }
        if (!rows[i].note.empty()) {
            text += "table      ";
            text += end - i == rows.size() ? ""
                                           : format("for %d to %d ranks: ", rows[i].first_ranks,
                                                    rows[end - 1].last_ranks);
            text += rows[i].note + "\n";
        }
        i = end;
    }
    return text;
}

std::string print_rows(const std::vector<Row> &rows)
{
    std::vector<std::size_t> widths;
    bool by_table = false;
    for (const Row &row : rows) {
        widths.resize(std::max(widths.size(), row.cells.size()));
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            widths[i] = std::max(widths[i], row.cells[i].size());
            by_table = by_table || row.cells[i].find('*') != std::string::npos;
        }
    }
    std::string text = format("\n%9s %6s  %s\n", "ranks", "nodes",
                              "algorithm and the largest vector that it serves, K = 1024 bytes");
    for (const Row &row : rows) {
        std::string line = format("%9s %6d", print_ranks(row).c_str(), row.nodes);
        const std::size_t indent = line.size();
        std::size_t gap = 2;
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
            if (line.size() + gap + row.cells[i].size() > kWidth) {
                text += line + "\n";
                line.assign(indent, ' ');
                gap = 2;
            }
            line += std::string(gap, ' ') + row.cells[i];
            gap = 2 + widths[i] - row.cells[i].size();
        }
        text += line + "\n";
    }
    return text + (by_table ? "\n* by a rule of the table, else by price\n" : "");
}

std::string print_head(const CallSetup &setup, const Topology &topology, bool has_table)
{
    const Query &query = setup.query;
    return format("calls      %s of %zu-byte elements%s%s, on %s\n",
                  query.op == OpClass::kSum ? "sums" : "other ops than sums", query.element_bytes,
                  query.memory == CallMemory::kMixed ? ", some ranks with host memory" : "",
                  query.reproducible ? ", reproducible" : "",
                  topology.machine.empty() ? "this machine" : topology.machine.c_str()) +
           (has_table ? ""
                      : "because    the cheapest algorithm serves a call, there is no table\n");
}

// The requests of the rows, without sizes.
Result<std::vector<CallRequest>> calls_of(const CallRequest &call, const Topology &topology)
{
    if (has_ranks(call)) {
        return std::vector<CallRequest>{call};
    }
    const int gpus = static_cast<int>(topology.gpus().size());
    const int on_node = gpus * call.ranks_per_gpu;
    if (gpus > kMostGpus || call.nodes > kMostRanks / std::max(on_node, 1)) {
        return error(Errc::kInvalid,
                     "a table of %d GPUs on each of %d nodes would take too long: at most %d GPUs "
                     "and %d ranks; or name one number of --ranks",
                     gpus, call.nodes, kMostGpus, kMostRanks);
    }
    std::vector<CallRequest> calls;
    const auto add = [&](int nodes, int ranks) {
        calls.push_back(call);
        calls.back().nodes = nodes;
        calls.back().ranks = ranks;
    };
    for (int ranks = call.ranks_per_gpu; ranks <= on_node; ranks += call.ranks_per_gpu) {
        if (ranks > 1) {
            add(1, ranks);
        }
    }
    for (int nodes = 2; nodes < call.nodes; nodes *= 2) {
        add(nodes, nodes * on_node);
    }
    if (call.nodes > 1) {
        add(call.nodes, call.nodes * on_node);
    }
    if (calls.empty()) {
        return error(Errc::kInvalid, "one GPU has no other to reduce with: give --nodes");
    }
    return calls;
}

} // namespace

bool has_ranks(const CallRequest &call) { return call.ranks > 0 || call.ranks_per_node > 0; }

Result<std::string> show_regions(const ExplainRequest &request, const CallRequest &call,
                                 const Topology &topology)
{
    Result<std::vector<CallRequest>> calls = calls_of(call, topology);
    if (!calls.ok()) {
        return calls.take_status();
    }
    Json json = json_document("hetcoll_info");
    json["regions"] = Json::array();
    std::string head;
    std::vector<Row> rows;
    for (const CallRequest &of_row : *calls) {
        Result<CallSetup> setup = set_up(request, of_row, &topology);
        if (!setup.ok()) {
            return setup.take_status();
        }
        const std::vector<Region> regions = regions_of(*setup);
        const int ranks = setup->query.ranks;
        head = print_head(*setup, topology, !request.table.empty());
        json["regions"].push_back(row_json(*setup, regions));
        add_row({setup->query.nodes, ranks, ranks, cells_of(regions), setup->by.note}, rows);
    }
    return request.json ? json_text(json) : head + print_notes(rows) + print_rows(rows);
}

} // namespace hetcoll
