#include "tools/info_call.h"

#include "engine/hetcoll.h"
#include "measure/command_line.h"
#include "measure/sizes.h"
#include "schedule/algorithms.h"
#include "tools/adapters_option.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kMost = 1 << 20; // of whatever is counted

} // namespace

void add_nodes_option(CommandLine &line, CallRequest &request, const std::string &text)
{
    line.add_option("--nodes", request.nodes, text).check(whole_number(1, kMost)).type_name("N");
}

void add_size_options(CommandLine &line, CallRequest &request)
{
    const Check counts = whole_number(1, kMost);
    line.add_option("--bytes", request.bytes, "the vector's size, such as 4M")
        .list()
        .check(size(1, kLargestSize))
        .type_name("SIZE,...");
    line.add_option("--ranks", request.ranks, "ranks of the communicator")
        .check(counts)
        .type_name("N");
    add_nodes_option(line, request, "nodes that the ranks are on (1)");
    line.add_option("--ranks-per-node", request.ranks_per_node, "ranks on each node")
        .check(counts)
        .type_name("N");
}

void add_call_options(CommandLine &line, CallRequest &request,
                      const std::vector<std::string> &collectives)
{
    add_size_options(line, request);
    line.add_option("--ranks-per-gpu", request.ranks_per_gpu, "most ranks that share a GPU (1)")
        .check(whole_number(1, kMost))
        .type_name("N");
    line.add_option("--collective", request.collective,
                    "another collective on device memory, such as bcast (allreduce)")
        .check(one_of(collectives))
        .type_name("NAME");
    line.add_option("--shares", request.shares).type_name("LIST").as_parameter();
    line.add_option("--aggregators", request.aggregators,
                    "how many coll_hetcoll_aggregators names (0)")
        .check(whole_number(0, kMost))
        .type_name("N");
    line.add_option("--rack-nodes", request.rack_nodes)
        .check(whole_number(0, HETCOLL_MAX_RACK_NODES))
        .type_name("N")
        .as_parameter();
    line.add_option("--rack-gbps", request.rack_gbps)
        .as_parameter()
        .check(whole_number(0, HETCOLL_MAX_RACK_GBPS))
        .type_name("GB/s")
        .needs("--rack-nodes");
    line.add_flag("--adapters", request.adapters, kAdaptersHelp);
}

Status check_collective(const CommandLine &line, const CallRequest &request)
{
    for (const char *option : {"--table", "--small-limit", "--algorithm", "--op", "--element",
                               "--chunk", "--mixed", "--accumulate", "--reproducible", "--shares",
                               "--aggregators", "--rack-nodes", "--adapters"}) {
        if (request.collective != "allreduce" && line.is_given(option)) {
            return error(Errc::kInvalid,
                         "%s is for allreduce, not for %s: leave it or --collective out", option,
                         request.collective.c_str());
        }
    }
    return {};
}

std::string print_bytes(std::size_t bytes)
{
    constexpr const char *kUnits[] = {"", "K", "M", "G"};
    int unit = 0;
    while (unit < 3 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        ++unit;
    }
    return std::to_string(bytes) + kUnits[unit];
}

Result<Query> parse_call(const CallRequest &request)
{
    Query query;
    query.nodes = request.nodes;
    query.ranks = request.ranks;
    query.ranks_per_gpu = request.ranks_per_gpu;
    if (query.ranks == 0) {
        if (request.ranks_per_node == 0) {
            return error(Errc::kInvalid, "how many ranks? write --ranks or --ranks-per-node");
        }
        const long long ranks = static_cast<long long>(request.nodes) * request.ranks_per_node;
        if (ranks > kMost) {
            return error(Errc::kInvalid, "%lld ranks are too many: at most %d", ranks, kMost);
        }
        query.ranks = static_cast<int>(ranks);
    }
    const NodeShape shape = node_shape(query);
    if (query.ranks < query.nodes) {
        return error(Errc::kInvalid, "%d ranks cannot be on %d nodes: each node has one at least",
                     query.ranks, query.nodes);
    }
    if (request.ranks_per_node != 0 && request.ranks_per_node != shape.max) {
        return error(Errc::kInvalid,
                     "%d ranks on %d nodes are not %d on each: leave out --ranks or "
                     "--ranks-per-node",
                     query.ranks, query.nodes, request.ranks_per_node);
    }
    if (query.ranks_per_gpu > shape.max) {
        return error(Errc::kInvalid, "%d ranks on a GPU are more than the %d on a node",
                     query.ranks_per_gpu, shape.max);
    }
    if (Result<ShareSetting> shares = parse_shares(request.shares); !shares.ok()) {
        return shares.take_status();
    }
    query.aggregators = request.aggregators;
    query.links.by_adapters = request.adapters;
    query.links.racks = {request.rack_nodes, static_cast<double>(request.rack_gbps)};
    const bool has_racks = request.rack_nodes < query.nodes && shape.min == shape.max;
    query.links.rack_ranks = has_racks ? request.rack_nodes * shape.max : 0;
    query.slices = query.nodes > 1 && shape.min == shape.max ? shape.max : 1;
    return query;
}

Result<Query> on_machine(const Query &query, const Topology *topology)
{
    if (query.links.by_adapters) {
        if (Status status = check_adapters(topology, query.nodes); !status.ok()) {
            return status;
        }
    }
    if (topology == nullptr) {
        Query guessed = query;
        if (node_shape(query).max > 1 && (query.nodes > 1 || query.ranks_per_gpu > 1)) {
            guessed.available |= algorithms_that_need(Needs::kGroups);
        }
        return guessed;
    }
    Result<Query> found = on_nodes(*topology, query);
    if (found.ok()) {
        found->links.by_adapters = query.links.by_adapters;
        found->links.racks = query.links.racks;
        found->links.rack_ranks = query.links.rack_ranks;
    }
    return found;
}

Result<RankShares> shares_of(const CallRequest &request, const Query &query,
                             const Topology *topology, const Links &links)
{
    auto setting = parse_shares(request.shares);
    if (!setting.ok()) {
        return setting.take_status();
    }
    std::vector<double> rates;
    if (topology != nullptr && query.nodes <= 1 && query.ranks_per_gpu <= 1) {
        std::vector<int> gpus(static_cast<std::size_t>(query.ranks));
        std::iota(gpus.begin(), gpus.end(), 0);
        rates = port_gbps(*topology, gpus);
    }
    return rank_shares(*setting, query.ranks, std::move(rates),
                       links.gpu_gbps > 0 ? links.gpu_gbps : links.host_gbps,
                       query.forced && needs(*query.forced, Needs::kShares));
}

std::string format(const char *pattern, ...)
{
    va_list args, again;
    va_start(args, pattern);
    va_copy(again, args);
    const int length = std::vsnprintf(nullptr, 0, pattern, args); // paths may be long
    std::string text(static_cast<std::size_t>(std::max(length, 0)), '\0');
    std::vsnprintf(text.data(), text.size() + 1, pattern, again);
    va_end(again);
    va_end(args);
    return text;
}

} // namespace hetcoll
