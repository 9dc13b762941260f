#include "tools/info_model.h"

#include "base/counted.h"
#include "choice/choose.h"
#include "machine/assumed.h"
#include "measure/command_line.h"
#include "plan/candidates.h"
#include "price/cluster_model.h"
#include "price/prices.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

constexpr int kMostRanks = 4096, kMostOnNode = 256; // that a price does not take long for

// The compared algorithms: those of hetcoll that run on such a cluster.
std::vector<Algorithm> columns_for(Prices &prices, const Query &query)
{
    const AlgorithmSet set =
        prices.set() & static_cast<AlgorithmSet>(~(kSmallOnlyAlgorithms | kWhenAskedAlgorithms));
    std::vector<Algorithm> columns;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (contains(set, algorithm) && !is_needless(algorithm, query)) {
            columns.push_back(algorithm);
        }
    }
    return columns;
}

AlgorithmSet set_of(const std::vector<Algorithm> &columns)
{
    AlgorithmSet set = 0;
    for (const Algorithm algorithm : columns) {
        set |= bit(algorithm);
    }
    return set;
}

Algorithm winner(AlgorithmSet set, std::size_t bytes, Query query, const PriceTable &table)
{
    query.bytes = bytes;
    query.available = set;
    return choose(query, nullptr, &table).algorithm;
}

struct Column { // cells of one width
    std::vector<std::string> cells;

    [[nodiscard]] std::size_t width() const
    {
        std::size_t width = 0;
        for (const std::string &cell : cells) {
            width = std::max(width, cell.size());
        }
        return width;
    }
};

// Below each other, in at most 100 columns, each with the first column.
std::string print_columns(const std::vector<Column> &columns)
{
    constexpr std::size_t kWidth = 100;
    std::string text;
    for (std::size_t begin = 1; begin < columns.size();) {
        std::size_t end = begin, width = columns[0].width();
        while (end < columns.size() &&
               (end == begin || width + 2 + columns[end].width() <= kWidth)) {
            width += 2 + columns[end++].width();
        }
        text += "\n";
        for (std::size_t row = 0; row < columns[0].cells.size(); ++row) {
            text +=
                format("%*s", static_cast<int>(columns[0].width()), columns[0].cells[row].c_str());
            for (std::size_t i = begin; i < end; ++i) {
                text += format("  %*s", static_cast<int>(columns[i].width()),
                               columns[i].cells[row].c_str());
            }
            text += "\n";
        }
        begin = end;
    }
    return text;
}

// `table` has all sizes, and `prices` those that were given up there.
std::string print_times(const std::vector<Algorithm> &algorithms, const PriceTable &table,
                        Prices &prices, const Query &query, const EqualNodes &cluster,
                        const std::vector<std::size_t> &sizes)
{
    std::vector<Column> columns{{{"bytes"}}, {{"cheapest"}}};
    const AlgorithmSet set = set_of(algorithms);
    for (const std::size_t bytes : sizes) {
        columns[0].cells.push_back(print_bytes(bytes));
        columns[1].cells.emplace_back(algorithm_name(winner(set, bytes, query, table)));
    }
    for (const Algorithm algorithm : algorithms) {
        Column column{{algorithm_name(algorithm)}};
        for (const std::size_t bytes : sizes) {
            double us = table.us(algorithm, bytes);
            if (std::isinf(us)) {
                us = price_near(prices, bytes, bit(algorithm)).us(algorithm, bytes);
            }
            column.cells.push_back(format("%.1f", us));
        }
        columns.push_back(std::move(column));
    }
    if (cluster.nodes > 1) {
        Column column{{"(in_network)"}};
        for (const std::size_t bytes : sizes) {
            column.cells.push_back(format("%.1f", cluster_us(ClusterAlgorithm::kInNetwork, cluster,
                                                             static_cast<double>(bytes))));
        }
        columns.push_back(std::move(column));
    }
    return "price of an allreduce, in microseconds\n" + print_columns(columns);
}

// Where the winner changes between 1 byte and 64 GiB, found by halving: to the byte if it changes
// once between two neighbours of the grid.
std::string print_crossovers(AlgorithmSet set, const PriceTable &table, const Query &query)
{
    constexpr int kSteps = 36 * 8; // eight a doubling
    const auto size_at = [](int step) {
        return static_cast<std::size_t>(std::exp2(static_cast<double>(step) / 8));
    };
    const auto winner_at = [&](std::size_t bytes) { return winner(set, bytes, query, table); };
    std::string text = "\ncheapest of hetcoll's algorithms\n\n";
    Algorithm current = winner_at(1);
    text += format("  from %12d bytes  ", 1) + algorithm_name(current) + "\n";
    for (int step = 1; step <= kSteps; ++step) {
        const Algorithm next = winner_at(size_at(step));
        if (next == current) {
            continue;
        }
        std::size_t low = size_at(step - 1), high = size_at(step);
        while (high - low > 1) {
            const std::size_t middle = low + (high - low) / 2;
            (winner_at(middle) == current ? low : high) = middle;
        }
        current = next;
        text += format("  from %12zu bytes  ", high) + algorithm_name(current) + "\n";
    }
    return text;
}

std::string print_conditions(const EqualNodes &c)
{
    if (c.nodes < 2 || c.gpus < 2) {
        return {};
    }
    const double n = c.gpus, ranks = n * c.nodes, ratio = c.gpu_gbps / c.node_gbps;
    std::string text =
        "\nbare closed forms (rings only, no kernels), B_i/B_o = " + format("%.3g", ratio) + "\n\n";
    text += format("  two levels of rings beat a flat ring for every size  if B_i/B_o >= %d: %s\n",
                   c.nodes, two_level_always_beats_flat(c) ? "yes" : "no");
    if (const auto limit = two_level_limit_bytes(c); limit) {
        text += format("  ... and otherwise below M* = %.0f bytes\n", *limit);
    }
    text += format("  reduction in the network beats a flat ring for every size  if B_i/B_o >= "
                   "%.3f: %s\n",
                   2 * (n - 1) * ranks / (n * (ranks - 2)),
                   in_network_always_beats_flat(c) ? "yes" : "no");
    return text + "  reduction in the network never loses against two levels of rings\n";
}

} // namespace

void add_model_options(CommandLine &line, ModelRequest &request, CallRequest &call)
{
    const Check rates = number(1e-6, 1e9);
    add_size_options(line, call);
    line.add_option("--intra", request.intra_gbps, "rate between GPUs of a node")
        .check(rates)
        .type_name("GB/s");
    line.add_option("--inter", request.inter_gbps, "rate of a node's network cards")
        .check(rates)
        .type_name("GB/s");
    line.add_option("--latency", request.latency_us, "cost of a step, for all links")
        .check(rates)
        .type_name("us");
}

Status check_model(const ModelRequest &request, const CallRequest &call)
{
    Result<Query> query = parse_call(call);
    if (!query.ok()) {
        return query.take_status();
    }
    const bool inter_missing = request.inter_gbps == 0 && query->nodes > 1;
    if (request.intra_gbps == 0 || request.latency_us == 0 || inter_missing) {
        return error(Errc::kInvalid,
                     "a model needs --intra GB/s, --latency us and, for several nodes, "
                     "--inter GB/s");
    }
    const int on_node = query->ranks / query->nodes;
    if (query->ranks % query->nodes != 0) {
        return error(Errc::kInvalid, "a model has equal nodes: %d ranks on %d are not",
                     query->ranks, query->nodes);
    }
    if (query->ranks > kMostRanks || on_node > kMostOnNode) {
        return error(Errc::kInvalid,
                     "a model has up to %d ranks, up to %d on a node: %d, %d on each, would "
                     "take too long",
                     kMostRanks, kMostOnNode, query->ranks, on_node);
    }
    return {};
}

Result<std::string> show_model(const ModelRequest &request, const CallRequest &call)
{
    Result<Query> parsed = parse_call(call);
    if (!parsed.ok()) {
        return parsed.take_status();
    }
    const Query &query = *parsed;
    const int on_node = query.ranks / query.nodes;
    std::vector<std::size_t> sizes = call.bytes;
    if (sizes.empty()) {
        for (std::size_t bytes = 1024; bytes <= (std::size_t{1} << 30); bytes *= 4) {
            sizes.push_back(bytes);
        }
    }
    EqualNodes cluster{.nodes = query.nodes,
                       .gpus = on_node,
                       .gpu_gbps = request.intra_gbps,
                       .node_gbps = request.inter_gbps,
                       .step_us = request.latency_us};
    const PricedMachine machine = paper_machine(cluster);
    cluster.node_gbps = request.inter_gbps > 0 ? request.inter_gbps : Links{}.node_gbps;
    Prices prices(machine.cluster, machine.ranks);
    const std::vector<Algorithm> columns = columns_for(prices, machine.ranks.query);
    const AlgorithmSet set = set_of(columns);
    PriceTable table;
    for (int size = 0; size < PriceTable::kSizes; ++size) {
        table.column(size) = prices.of_size(size, set);
    }
    const Links &links = machine.ranks.query.links;
    std::string text = format("%s on %s, %d on each; %g GB/s between GPUs of a node",
                              counted(query.ranks, "rank").c_str(),
                              counted(query.nodes, "node").c_str(), on_node, request.intra_gbps);
    if (query.nodes > 1) {
        text += format(", %g GB/s between nodes", request.inter_gbps);
    }
    text += format(", %g us a step\nassumed: %g GB/s of GPU memory, %g us for a kernel, all pairs "
                   "of GPUs at full rate\n\n",
                   request.latency_us, links.memory_gbps, links.launch_us);
    return text + print_times(columns, table, prices, query, cluster, sizes) +
           print_crossovers(set, table, query) + print_conditions(cluster);
}

} // namespace hetcoll
