#include "tools/place_print.h"

#include "base/counted.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <numeric>

namespace hetcoll {
namespace {

[[gnu::format(printf, 1, 2)]] std::string text(const char *format, ...)
{
    std::array<char, 400> line{};
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line.data(), line.size(), format, arguments);
    va_end(arguments);
    return line.data();
}

std::string comparison_line(const char *name, const PlaceAllocation &allocation)
{
    const std::vector<double> speeds = allocation.speeds();
    return text("%-10s %4zu x %-3zu %10.1f %10.1f %6.1f%% %6.1f%% %12.1f %12.1f\n", name,
                allocation.workers.size(), allocation.workers[0].stages.size(),
                allocation.samples_per_s(), std::accumulate(speeds.begin(), speeds.end(), 0.0),
                100 * allocation.spread, 100 * allocation.loss, allocation.sync_mb,
                allocation.pipeline_mb);
}

const MixedNode &node_of(const MixedCluster &cluster, const PipelineStage &stage)
{
    return cluster.nodes[static_cast<std::size_t>(stage.node)];
}

} // namespace

std::string print_comparison(const MixedCluster &cluster, int in_flight)
{
    std::string out = text("%-10s %-10s %10s %10s %7s %7s %12s %12s\n", "", "workers", "samples/s",
                           "samples/s", "", "", "MB, a wave:", "MB, a step:") +
                      text("%-10s %-10s %10s %10s %7s %7s %12s %12s\n", "allocation", "x stages",
                           "alike", "split", "spread", "loss", "sync", "pipeline");
    std::string notes;
    for (int i = 0; i < kPolicyCount; ++i) {
        const auto policy = static_cast<Policy>(i);
        const Result<PlaceAllocation> allocation = allocate(cluster, policy, in_flight);
        if (allocation.ok()) {
            out += comparison_line(policy_name(policy), *allocation);
        } else {
            notes += text("%s is not possible: %s\n", policy_name(policy),
                          allocation.status().message().c_str());
        }
    }
    const Result<PlaceAllocation> plain = data_parallel(cluster);
    if (plain.ok()) {
        out += comparison_line("DP", *plain);
        std::size_t gpus = 0;
        for (const MixedNode &node : cluster.nodes) {
            gpus += node.gpus.size();
        }
        if (plain->workers.size() < gpus) {
            notes +=
                text("DP: %zu of %zu GPUs hold the whole model\n", plain->workers.size(), gpus);
        }
    } else {
        notes += text("DP is not possible: %s\n", plain.status().message().c_str());
    }
    return out + notes +
           "\nNP: the GPUs of a node are a worker. ED: a worker has one GPU of every node. HD: "
           "half of a\n"
           "fast node with half of a slow one. ED-local: as ED, with a stage of all workers on one "
           "node.\n"
           "DP: no pipeline, each GPU that holds the whole model is a worker. alike: all workers "
           "get\n"
           "equal batches; split: batches by their speeds. loss: of the time, with equal "
           "batches.\n";
}

std::string print_allocation(const MixedCluster &cluster, const PlaceAllocation &allocation,
                             int batch)
{
    std::string out;
    for (std::size_t w = 0; w < allocation.workers.size(); ++w) {
        const Worker &worker = allocation.workers[w];
        out += text("worker %zu: %.1f samples/s\n", w, worker.samples_per_s);
        for (std::size_t s = 0; s < worker.stages.size(); ++s) {
            const PipelineStage &stage = worker.stages[s];
            const GpuType &type = cluster.type(stage.node, stage.gpu);
            out += text("  rank %-4zu stage %-3zu %5.1f%% of the model on %s, GPU %d (%s)\n",
                        w * worker.stages.size() + s, s, 100 * stage.share,
                        node_of(cluster, stage).name.c_str(), stage.gpu, type.model.c_str());
        }
    }
    out +=
        text("between nodes: %.1f MB a wave for parameters, %.1f MB a minibatch in the pipelines\n",
             allocation.sync_mb, allocation.pipeline_mb);
    const std::vector<double> speeds = allocation.speeds();
    const std::vector<int> parts = split_batch(batch, speeds);
    out += text(
        "with equal batches %.1f %% of the time waits for the slowest worker, with this split of "
        "%d samples %.1f %%:\n",
        100 * allocation.loss, batch, 100 * split_loss(parts, speeds));
    for (std::size_t w = 0; w < parts.size(); ++w) {
        out += text("  worker %-4zu %6d samples, loss weight %.6f\n", w, parts[w],
                    static_cast<double>(parts[w]) / batch);
    }
    return out;
}

std::string print_rank_file(const MixedCluster &cluster, const PlaceAllocation &allocation)
{
    std::map<int, int> ranks_of, seen; // by node
    for (const Worker &worker : allocation.workers) {
        for (const PipelineStage &stage : worker.stages) {
            ++ranks_of[stage.node];
        }
    }
    std::string hosts, out;
    for (const auto &[node, ranks] : ranks_of) {
        hosts += (hosts.empty() ? "" : ",") + cluster.nodes[static_cast<std::size_t>(node)].name +
                 ":" + std::to_string(ranks);
    }
    const std::size_t stages = allocation.workers[0].stages.size();
    out = text("# %s: %s of %s; rank = worker * %zu + stage\n", policy_name(allocation.policy),
               counted(allocation.workers.size(), "worker").c_str(),
               counted(stages, "stage").c_str(), stages);
    out += "# mpirun -H " + hosts + " -n " + std::to_string(stages * allocation.workers.size()) +
           " --rankfile FILE ...\n";
    std::size_t rank = 0;
    for (const Worker &worker : allocation.workers) {
        for (const PipelineStage &stage : worker.stages) {
            const MixedNode &node = node_of(cluster, stage);
            const int index = seen[stage.node]++, ranks = ranks_of[stage.node];
            const int first = node.cores > ranks ? index * node.cores / ranks : index;
            const int last = node.cores > ranks ? (index + 1) * node.cores / ranks - 1 : index;
            out += text("# rank %zu has GPU %d\n", rank, stage.gpu);
            out += text("rank %zu=%s slot=%s\n", rank, node.name.c_str(),
                        first == last ? std::to_string(first).c_str()
                                      : text("%d-%d", first, last).c_str());
            ++rank;
        }
    }
    return out;
}

} // namespace hetcoll
