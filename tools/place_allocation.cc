#include "tools/place_allocation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <utility>

namespace hetcoll {
namespace {

constexpr double kUnlimited = 1e18;

int node_count(const MixedCluster &cluster) { return static_cast<int>(cluster.nodes.size()); }

int gpu_count(const MixedCluster &cluster, int node)
{
    return static_cast<int>(cluster.nodes[static_cast<std::size_t>(node)].gpus.size());
}

double node_speed(const MixedCluster &cluster, int node)
{
    double speed = 0;
    for (int gpu = 0; gpu < gpu_count(cluster, node); ++gpu) {
        speed += cluster.type(node, gpu).samples_per_s;
    }
    return speed;
}

Result<int> equal_gpu_count(const MixedCluster &cluster)
{
    const int gpus = gpu_count(cluster, 0);
    for (int node = 1; node < node_count(cluster); ++node) {
        if (gpu_count(cluster, node) != gpus) {
            return error(Errc::kUnsupported,
                         "it needs as many GPUs on every node, and %s has %d, %s %d",
                         cluster.nodes[0].name.c_str(), gpus,
                         cluster.nodes[static_cast<std::size_t>(node)].name.c_str(),
                         gpu_count(cluster, node));
        }
    }
    return gpus;
}

std::vector<Worker> node_partition(const MixedCluster &cluster, int gpus)
{
    std::vector<Worker> workers(cluster.nodes.size());
    for (int node = 0; node < node_count(cluster); ++node) {
        for (int gpu = 0; gpu < gpus; ++gpu) {
            workers[static_cast<std::size_t>(node)].stages.push_back({node, gpu});
        }
    }
    return workers;
}

// Rotated, worker w begins on node w, so that first stages and their parameters are everywhere.
enum class FirstStages : std::uint8_t { kOnFirstNode, kRotated };
std::vector<Worker> equal(const MixedCluster &cluster, int gpus, FirstStages first)
{
    const int nodes = node_count(cluster);
    std::vector<Worker> workers(static_cast<std::size_t>(gpus));
    for (int w = 0; w < gpus; ++w) {
        for (int stage = 0; stage < nodes; ++stage) {
            workers[static_cast<std::size_t>(w)].stages.push_back(
                {(stage + (first == FirstStages::kRotated ? w : 0)) % nodes, w});
        }
    }
    return workers;
}

// The fastest node with the slowest one, and so on to the middle: two workers a pair.
Result<std::vector<Worker>> hybrid(const MixedCluster &cluster, int gpus)
{
    const int nodes = node_count(cluster);
    if (nodes % 2 != 0 || gpus % 2 != 0) {
        return error(
            Errc::kUnsupported,
            "it pairs halves of nodes, and there are %d nodes of %d GPUs: both must be even", nodes,
            gpus);
    }
    std::vector<int> order(static_cast<std::size_t>(nodes));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return node_speed(cluster, a) > node_speed(cluster, b); });
    std::vector<Worker> workers;
    for (int pair = 0; pair < nodes / 2; ++pair) {
        const int fast = order[static_cast<std::size_t>(pair)],
                  slow = order[static_cast<std::size_t>(nodes - 1 - pair)];
        for (int half = 0; half < 2; ++half) {
            Worker worker;
            for (const int node : {fast, slow}) {
                for (int i = 0; i < gpus / 2; ++i) {
                    worker.stages.push_back({node, half * gpus / 2 + i});
                }
            }
            workers.push_back(std::move(worker));
        }
    }
    return workers;
}

// Most of the model that fits on the GPU as stage `stage`: the first stage keeps the activations of
// all minibatches under way, the last those of one.
double memory_share(const MixedCluster &cluster, const PipelineStage &place, int stage,
                    int in_flight)
{
    const TrainedModel &model = cluster.model;
    const double whole = model.state_mb + model.activations_mb * std::max(1, in_flight - stage);
    return whole > 0 ? cluster.type(place.node, place.gpu).memory_mb / whole : kUnlimited;
}

// Shares that make the slowest stage as fast as can be: in proportion to speed, unless memory
// bounds one. False if the model does not fit.
bool divide(std::vector<PipelineStage> &stages, const std::vector<double> &speeds,
            const std::vector<double> &most)
{
    std::vector<bool> full(stages.size(), false);
    double rest = 1;
    while (true) {
        double speed = 0;
        for (std::size_t i = 0; i < stages.size(); ++i) {
            speed += full[i] ? 0 : speeds[i];
        }
        bool again = false;
        if (speed == 0) {
            return rest <= 1e-12;
        }
        const double time = rest / speed;
        for (std::size_t i = 0; i < stages.size(); ++i) {
            if (!full[i] && speeds[i] * time > most[i]) {
                full[i] = again = true;
                stages[i].share = most[i];
                rest -= most[i];
            }
        }
        if (!again) {
            for (std::size_t i = 0; i < stages.size(); ++i) {
                stages[i].share = full[i] ? stages[i].share : speeds[i] * time;
            }
            return true;
        }
    }
}

// The samples that a worker trains in a second: by its slowest stage, or the slowest way between
// two of them. `senders[node]`: stages on it that pass something to another node.
double worker_rate(const MixedCluster &cluster, const Worker &worker,
                   const std::vector<int> &senders)
{
    double rate = kUnlimited;
    for (std::size_t i = 0; i < worker.stages.size(); ++i) {
        const PipelineStage &stage = worker.stages[i];
        rate = std::min(rate, cluster.type(stage.node, stage.gpu).samples_per_s / stage.share);
        if (i + 1 == worker.stages.size() || cluster.model.boundary_mb <= 0) {
            continue;
        }
        const PipelineStage &next = worker.stages[i + 1];
        const MixedNode &from = cluster.nodes[static_cast<std::size_t>(stage.node)];
        const bool inside = stage.node == next.node;
        const double to_gbps = cluster.nodes[static_cast<std::size_t>(next.node)].network_gbps;
        double gbps = inside ? from.link_gbps : from.network_gbps;
        if (!inside && to_gbps > 0) {
            gbps = gbps > 0 ? std::min(gbps, to_gbps) : to_gbps;
        }
        if (gbps > 0) {
            const int sharing = inside ? 1 : senders[static_cast<std::size_t>(stage.node)];
            rate = std::min(rate,
                            gbps * 1e3 / sharing / cluster.model.boundary_mb * cluster.model.batch);
        }
    }
    return rate;
}

// A parameter's updates are added on each node first, then between nodes: of the d nodes that hold
// it all but one send their sum and get the result.
double sync_share(const PlaceAllocation &allocation)
{
    std::vector<double> cuts = {0, 1};
    for (const Worker &worker : allocation.workers) {
        double end = 0;
        for (const PipelineStage &stage : worker.stages) {
            cuts.push_back(std::min(1.0, end += stage.share));
        }
    }
    std::sort(cuts.begin(), cuts.end());
    double sum = 0;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
        const double width = cuts[i + 1] - cuts[i], middle = cuts[i] + width / 2;
        if (width < 1e-9) { // the same cut of two workers, rounded
            continue;
        }
        std::set<int> nodes;
        for (const Worker &worker : allocation.workers) {
            double end = 0;
            for (const PipelineStage &stage : worker.stages) {
                end += stage.share;
                if (middle < end) {
                    nodes.insert(stage.node);
                    break;
                }
            }
        }
        sum += width * 2 * static_cast<double>(nodes.size() - 1);
    }
    return sum;
}

// One division for all workers, if a stage of all of them is to lie on one node: by the slowest GPU
// of each stage.
Status divide_alike(const MixedCluster &cluster, std::vector<Worker> &workers, int in_flight)
{
    const std::size_t stages = workers[0].stages.size();
    std::vector<double> speeds(stages, kUnlimited), most(stages, kUnlimited);
    for (const Worker &worker : workers) {
        for (std::size_t i = 0; i < stages; ++i) {
            const PipelineStage &stage = worker.stages[i];
            speeds[i] = std::min(speeds[i], cluster.type(stage.node, stage.gpu).samples_per_s);
            most[i] =
                std::min(most[i], memory_share(cluster, stage, static_cast<int>(i), in_flight));
        }
    }
    for (Worker &worker : workers) {
        if (!divide(worker.stages, speeds, most)) {
            return error(Errc::kUnsupported,
                         "the model does not fit into the memory of its workers "
                         "with %d minibatches under way",
                         in_flight);
        }
    }
    return {};
}

Status divide_each(const MixedCluster &cluster, std::vector<Worker> &workers, int in_flight)
{
    for (std::size_t w = 0; w < workers.size(); ++w) {
        std::vector<double> speeds, most;
        for (std::size_t i = 0; i < workers[w].stages.size(); ++i) {
            const PipelineStage &stage = workers[w].stages[i];
            speeds.push_back(cluster.type(stage.node, stage.gpu).samples_per_s);
            most.push_back(memory_share(cluster, stage, static_cast<int>(i), in_flight));
        }
        if (!divide(workers[w].stages, speeds, most)) {
            return error(Errc::kUnsupported,
                         "the model does not fit into the memory of worker %zu "
                         "with %d minibatches under way",
                         w, in_flight);
        }
    }
    return {};
}

void predict(const MixedCluster &cluster, PlaceAllocation &allocation)
{
    std::vector<int> senders(cluster.nodes.size(), 0);
    double crossings = 0;
    for (const Worker &worker : allocation.workers) {
        for (std::size_t i = 0; i + 1 < worker.stages.size(); ++i) {
            if (worker.stages[i].node != worker.stages[i + 1].node) {
                ++senders[static_cast<std::size_t>(worker.stages[i].node)];
                ++crossings;
            }
        }
    }
    for (Worker &worker : allocation.workers) {
        worker.samples_per_s = worker_rate(cluster, worker, senders);
    }
    const std::vector<double> speeds = allocation.speeds();
    const auto [slowest, fastest] = std::minmax_element(speeds.begin(), speeds.end());
    const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    allocation.spread = 1 - *slowest / *fastest;
    allocation.loss = 1 - *slowest * static_cast<double>(speeds.size()) / all;
    allocation.sync_mb = sync_share(allocation) * cluster.model.parameters_mb;
    allocation.pipeline_mb = 2 * crossings * cluster.model.boundary_mb;
}

Result<std::vector<Worker>> choose_gpus(const MixedCluster &cluster, Policy policy)
{
    const Result<int> gpus = equal_gpu_count(cluster);
    if (!gpus.ok()) {
        return error(gpus.status().code(), "%s", gpus.status().message().c_str());
    }
    switch (policy) {
    case Policy::kNodePartition: return node_partition(cluster, *gpus);
    case Policy::kHybrid: return hybrid(cluster, *gpus);
    case Policy::kEqual: return equal(cluster, *gpus, FirstStages::kRotated);
    case Policy::kEqualLocal: break;
    }
    return equal(cluster, *gpus, FirstStages::kOnFirstNode);
}

} // namespace

const char *policy_name(Policy policy)
{
    constexpr const char *kNames[] = {"NP", "ED", "HD", "ED-local"};
    return kNames[static_cast<int>(policy)];
}

double PlaceAllocation::samples_per_s() const
{
    const std::vector<double> all = speeds();
    return *std::min_element(all.begin(), all.end()) * static_cast<double>(all.size());
}

std::vector<double> PlaceAllocation::speeds() const
{
    std::vector<double> all;
    for (const Worker &worker : workers) {
        all.push_back(worker.samples_per_s);
    }
    return all;
}

Result<PlaceAllocation> allocate(const MixedCluster &cluster, Policy policy, int in_flight)
{
    Result<std::vector<Worker>> workers = choose_gpus(cluster, policy);
    if (!workers.ok()) {
        return workers.take_status();
    }
    PlaceAllocation made;
    made.policy = policy;
    made.workers = std::move(*workers);
    const int under_way =
        in_flight > 0 ? in_flight : static_cast<int>(made.workers[0].stages.size());
    Status status = policy == Policy::kEqualLocal ? divide_alike(cluster, made.workers, under_way)
                                                  : divide_each(cluster, made.workers, under_way);
    if (!status.ok()) {
        return status;
    }
    predict(cluster, made);
    return made;
}

Result<PlaceAllocation> data_parallel(const MixedCluster &cluster)
{
    PlaceAllocation made;
    for (int node = 0; node < node_count(cluster); ++node) {
        for (int gpu = 0; gpu < gpu_count(cluster, node); ++gpu) {
            if (memory_share(cluster, {node, gpu}, 0, 1) >= 1) {
                made.workers.push_back({{{node, gpu, 1}}, 0});
            }
        }
    }
    if (made.workers.empty()) {
        return error(Errc::kUnsupported, "no GPU holds the whole model");
    }
    predict(cluster, made);
    return made;
}

// The next sample goes where it ends soonest.
std::vector<int> split_batch(int batch, std::span<const double> speeds)
{
    const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    std::vector<int> parts;
    using Next = std::pair<double, std::size_t>; // when it would end, worker
    std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
    int left = batch;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
        parts.push_back(std::min(left, static_cast<int>(std::floor(batch * speeds[i] / all))));
        left -= parts[i];
        next.emplace((parts[i] + 1) / speeds[i], i);
    }
    for (; left > 0; --left) {
        const std::size_t i = next.top().second;
        next.pop();
        ++parts[i];
        next.emplace((parts[i] + 1) / speeds[i], i);
    }
    return parts;
}

double split_loss(std::span<const int> batches, std::span<const double> speeds)
{
    double time = 0, all = 0, batch = 0;
    for (std::size_t i = 0; i < speeds.size(); ++i) {
        time = std::max(time, batches[i] / speeds[i]);
        all += speeds[i];
        batch += batches[i];
    }
    return time > 0 ? 1 - batch / all / time : 0;
}

} // namespace hetcoll
