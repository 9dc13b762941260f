#include "tools/info_call.h"

#include <CLI/CLI.hpp>

#include <cstdarg>
#include <cstdio>

namespace hetcoll {

void add_call_options(CLI::App &app, CallRequest &request)
{
    constexpr int kMost = 1 << 20;
    const CLI::Range counts(1, kMost);
    app.add_option("--bytes", request.bytes, "with --model, --explain: the vector's size, as 4M")
        ->delimiter(',')
        ->transform(CLI::AsSizeValue(false))
        ->type_name("SIZE,...");
    app.add_option("--ranks", request.ranks, "with --explain: ranks of the communicator")
        ->check(counts)
        ->type_name("N");
    app.add_option("--nodes", request.nodes, "with --model, --explain: nodes they are on (1)")
        ->check(counts)
        ->type_name("N");
    app.add_option("--ranks-per-node", request.ranks_per_node,
                   "with --model, --explain: ranks on each node")
        ->check(counts)
        ->type_name("N");
    app.add_option("--ranks-per-gpu", request.ranks_per_gpu,
                   "with --explain: most ranks that share a GPU (1)")
        ->check(counts)
        ->type_name("N");
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
        query.ranks = request.nodes * request.ranks_per_node;
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
    return query;
}

std::string format(const char *pattern, ...)
{
    char text[512];
    va_list args;
    va_start(args, pattern);
    std::vsnprintf(text, sizeof text, pattern, args);
    va_end(args);
    return text;
}

} // namespace hetcoll
