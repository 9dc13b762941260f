#include "tools/place_json.h"

#include "measure/json_document.h"

#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

Json worth_of(const char *name, const PlaceAllocation &allocation)
{
    const std::vector<double> speeds = allocation.speeds();
    return {{"allocation", name},
            {"possible", true},
            {"workers", allocation.workers.size()},
            {"stages", allocation.workers[0].stages.size()},
            {"samples_per_s", allocation.samples_per_s()},
            {"samples_per_s_split", std::accumulate(speeds.begin(), speeds.end(), 0.0)},
            {"spread", allocation.spread},
            {"loss", allocation.loss},
            {"sync_mb", allocation.sync_mb},
            {"pipeline_mb", allocation.pipeline_mb}};
}

Json worth_of(const char *name, const Result<PlaceAllocation> &allocation)
{
    if (allocation.ok()) {
        return worth_of(name, *allocation);
    }
    return {{"allocation", name}, {"possible", false}, {"why", allocation.status().message()}};
}

} // namespace

std::string comparison_json(const MixedCluster &cluster, int in_flight)
{
    Json json = json_document("hetcoll_place");
    json["allocations"] = Json::array();
    for (int i = 0; i < kPolicyCount; ++i) {
        const auto policy = static_cast<Policy>(i);
        json["allocations"].push_back(
            worth_of(policy_name(policy), allocate(cluster, policy, in_flight)));
    }
    json["allocations"].push_back(worth_of("DP", data_parallel(cluster)));
    return json_text(json);
}

std::string allocation_json(const MixedCluster &cluster, const PlaceAllocation &allocation,
                            int batch)
{
    Json json = json_document("hetcoll_place");
    json["allocations"] = Json::array({worth_of(policy_name(allocation.policy), allocation)});
    const std::vector<double> speeds = allocation.speeds();
    const std::vector<int> parts = split_batch(batch, speeds);
    json["batch"] = batch;
    json["split_loss"] = split_loss(parts, speeds);
    json["workers"] = Json::array();
    int rank = 0;
    for (std::size_t w = 0; w < allocation.workers.size(); ++w) {
        Json worker = {{"samples_per_s", speeds[w]},
                       {"samples", parts[w]},
                       {"loss_weight", static_cast<double>(parts[w]) / batch},
                       {"stages", Json::array()}};
        for (const PipelineStage &stage : allocation.workers[w].stages) {
            worker["stages"].push_back(
                {{"rank", rank++},
                 {"node", cluster.nodes[static_cast<std::size_t>(stage.node)].name},
                 {"gpu", stage.gpu},
                 {"model", cluster.type(stage.node, stage.gpu).model},
                 {"share", stage.share}});
        }
        json["workers"].push_back(std::move(worker));
    }
    return json_text(json);
}

} // namespace hetcoll
