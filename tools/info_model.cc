#include "tools/info_model.h"

#include "tuning/cluster_model.h"
#include "tuning/model.h"
#include "tuning/topology_links.h"

#include <CLI/CLI.hpp>

#include <cmath>

namespace hetcoll {
namespace {

// What is compared: hetcoll's algorithms that run on such a cluster, then what a network that
// reduces would do.
struct Column {
    std::string name;
    double (*us)(const Column &, const Query &, const PaperCluster &);
    Algorithm algorithm = Algorithm::kRing;
};

double algorithm_us(const Column &column, const Query &query, const PaperCluster &)
{
    return predict_us(column.algorithm, query);
}

double network_us(const Column &, const Query &query, const PaperCluster &cluster)
{
    return cluster_us(ClusterWay::kInNetwork, cluster, static_cast<double>(query.bytes));
}

std::vector<Column> columns_for(const PaperCluster &cluster)
{
    std::vector<Column> columns;
    const AlgorithmSet available = available_algorithms({.nodes = cluster.nodes,
                                                         .ranks_per_node = cluster.ranks_per_node,
                                                         .ranks_per_gpu = 1,
                                                         .mapped = true,
                                                         .trees = false}) &
                                   static_cast<AlgorithmSet>(~kSmallOnlyAlgorithms);
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (contains(available, algorithm) && !row_of(algorithm).has(Trait::kWhenAsked)) {
            columns.push_back({algorithm_name(algorithm), algorithm_us, algorithm});
        }
    }
    if (cluster.nodes > 1) {
        columns.push_back({"(in_network)", network_us});
    }
    return columns;
}

// The fastest one that hetcoll can run; in_network is the last column and only for comparison.
std::size_t winner(const std::vector<Column> &columns, const Query &query,
                   const PaperCluster &cluster)
{
    std::size_t best = 0;
    for (std::size_t i = 1; i < columns.size(); ++i) {
        if (columns[i].us == algorithm_us && columns[i].us(columns[i], query, cluster) <
                                                 columns[best].us(columns[best], query, cluster)) {
            best = i;
        }
    }
    return best;
}

std::string print_times(const std::vector<Column> &columns, Query query,
                        const PaperCluster &cluster, const std::vector<std::size_t> &sizes)
{
    constexpr int kWidth = 13;
    std::string text =
        "predicted time of an allreduce, in microseconds\n\n" + format("%10s", "bytes");
    for (const Column &column : columns) {
        text += format(" %*s", std::max(kWidth, static_cast<int>(column.name.size())),
                       column.name.c_str());
    }
    text += "  winner\n";
    for (const std::size_t bytes : sizes) {
        query.bytes = bytes;
        text += format("%10s", print_bytes(bytes).c_str());
        for (const Column &column : columns) {
            text += format(" %*.1f", std::max(kWidth, static_cast<int>(column.name.size())),
                           column.us(column, query, cluster));
        }
        text += "  " + columns[winner(columns, query, cluster)].name + "\n";
    }
    return text;
}

// Where the winner changes between 1 byte and 64 GiB, found by halving: to the byte if it changes
// once between two neighbours of the grid.
std::string print_crossovers(const std::vector<Column> &columns, Query query,
                             const PaperCluster &cluster)
{
    constexpr int kSteps = 36 * 8; // eight a doubling
    const auto size_at = [](int step) {
        return static_cast<std::size_t>(std::exp2(static_cast<double>(step) / 8));
    };
    const auto winner_at = [&](std::size_t bytes) {
        query.bytes = bytes;
        return winner(columns, query, cluster);
    };
    std::string text = "\nfastest of hetcoll's algorithms\n\n";
    std::size_t current = winner_at(1);
    text += format("  from %12d bytes  ", 1) + columns[current].name + "\n";
    for (int step = 1; step <= kSteps; ++step) {
        const std::size_t next = winner_at(size_at(step));
        if (next == current) {
            continue;
        }
        std::size_t low = size_at(step - 1), high = size_at(step);
        while (high - low > 1) {
            const std::size_t middle = low + (high - low) / 2;
            (winner_at(middle) == current ? low : high) = middle;
        }
        current = next;
        text += format("  from %12zu bytes  ", high) + columns[current].name + "\n";
    }
    return text;
}

std::string print_conditions(const PaperCluster &c)
{
    if (c.nodes < 2 || c.ranks_per_node < 2) {
        return {};
    }
    const double n = c.ranks_per_node, ranks = n * c.nodes, ratio = c.intra_gbps / c.inter_gbps;
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

void add_model_options(CLI::App &app, ModelRequest &request)
{
    auto *model = app.add_flag("--model", request.wanted,
                               "show what the closed forms predict for a cluster of equal nodes");
    app.add_option("--intra", request.intra_gbps, "with --model: rate between GPUs of a node")
        ->check(CLI::PositiveNumber)
        ->type_name("GB/s")
        ->needs(model);
    app.add_option("--inter", request.inter_gbps, "with --model: rate of a node's network cards")
        ->check(CLI::PositiveNumber)
        ->type_name("GB/s")
        ->needs(model);
    app.add_option("--latency", request.latency_us, "with --model: cost of a step, for all links")
        ->check(CLI::PositiveNumber)
        ->type_name("us")
        ->needs(model);
}

Result<std::string> show_model(const ModelRequest &request, const CallRequest &call)
{
    Result<Query> parsed = parse_call(call);
    if (!parsed.ok()) {
        return parsed.take_status();
    }
    Query &query = *parsed;
    const bool inter_missing = request.inter_gbps == 0 && query.nodes > 1;
    if (request.intra_gbps == 0 || request.latency_us == 0 || inter_missing) {
        return error(Errc::kInvalid, "--model needs --intra GB/s, --latency us and, for several "
                                     "nodes, --inter GB/s");
    }
    if (query.ranks % query.nodes != 0) {
        return error(Errc::kInvalid, "--model takes equal nodes: %d ranks on %d are not",
                     query.ranks, query.nodes);
    }
    std::vector<std::size_t> sizes = call.bytes;
    if (sizes.empty()) {
        for (std::size_t bytes = 1024; bytes <= (std::size_t{1} << 30); bytes *= 4) {
            sizes.push_back(bytes);
        }
    }
    Links &links = query.links;
    links.gpu_gbps = request.intra_gbps;
    links.switched = true;
    links.host_gbps = std::max(request.intra_gbps, request.inter_gbps); // not what limits here
    links.node_gbps = request.inter_gbps > 0 ? request.inter_gbps : links.node_gbps;
    links.gpu_latency_us = links.host_latency_us = links.node_latency_us = request.latency_us;
    const PaperCluster cluster{.ranks_per_node = query.ranks / query.nodes,
                               .nodes = query.nodes,
                               .intra_gbps = request.intra_gbps,
                               .inter_gbps = links.node_gbps,
                               .latency_us = request.latency_us};
    const std::vector<Column> columns = columns_for(cluster);
    std::string text = format("%d ranks on %d node%s, %d on each; %g GB/s between GPUs of a node",
                              query.ranks, query.nodes, query.nodes == 1 ? "" : "s",
                              cluster.ranks_per_node, request.intra_gbps);
    if (query.nodes > 1) {
        text += format(", %g GB/s between nodes", request.inter_gbps);
    }
    text += format(", %g us a step\nassumed: %g GB/s of GPU memory, %g us for a kernel, all pairs "
                   "of GPUs at full rate\n\n",
                   request.latency_us, links.memory_gbps, links.launch_us);
    return text + print_times(columns, query, cluster, sizes) +
           print_crossovers(columns, query, cluster) + print_conditions(cluster);
}

} // namespace hetcoll
