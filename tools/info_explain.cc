#include "tools/info_explain.h"

#include "base/counted.h"
#include "engine/hetcoll.h"
#include "machine/topology_links.h"
#include "measure/command_line.h"
#include "measure/json_document.h"
#include "measure/sizes.h"
#include "plan/describe.h"
#include "price/price_table.h"
#include "tools/call_setup.h"
#include "tools/info_adapters.h"
#include "tools/info_collective.h"
#include "tools/info_costs.h"
#include "tools/info_regions.h"

#include <algorithm>
#include <chrono>

namespace hetcoll {
namespace {

constexpr int kMostRanks = 16384, kMostOnNode = 256; // that a price does not take long for

std::string print_range(const char *what, const Range &range)
{
    if (range == Range{}) {
        return {};
    }
    const std::string low = std::to_string(range.min);
    const std::string high = range.max == Range::kInfinite ? "inf" : std::to_string(range.max);
    return ", " + std::string(what) + " " + (range.min == range.max ? low : low + " to " + high);
}

// "FILE:LINE, bytes 0 to 4096, ranks 2 to 8": where a rule is, and what for.
std::string print_rule(const Table &table, int rule)
{
    const RuleSet &set = table.set_of(rule);
    const SizeRule &size = table.rule(rule);
    std::string text = format("%s:%d", table.path().c_str(), size.line);
    text += print_range("bytes", size.bytes) + print_range("ranks", set.ranks) +
            print_range("nodes", set.nodes) + print_range("ranks on a node", set.ranks_per_node) +
            print_range("ranks on a GPU", set.ranks_per_gpu) +
            print_range("bytes of an element", set.element_bytes);
    if (set.op) {
        text += *set.op == OpClass::kSum ? ", sums" : ", other ops than sums";
    }
    if (set.memory) {
        text += *set.memory == CallMemory::kDevice ? ", device memory" : ", mixed memory";
    }
    return text + (set.machine.empty() ? "" : ", machine " + set.machine);
}

std::string print_call(const Query &query)
{
    const NodeShape shape = node_shape(query);
    const std::string on_each = shape.min == shape.max ? std::to_string(shape.max)
                                                       : format("%d to %d", shape.min, shape.max);
    return format("call       %zu bytes, %s of %zu-byte elements, %s on %s (%s on "
                  "each), %d on a GPU%s\n",
                  query.bytes, query.op == OpClass::kSum ? "sum" : "another op",
                  query.element_bytes, counted(query.ranks, "rank").c_str(),
                  counted(query.nodes, "node").c_str(), on_each.c_str(), query.ranks_per_gpu,
                  query.memory == CallMemory::kMixed ? ", some with host memory" : "");
}

std::string print_racks(const Racks &racks)
{
    if (racks.nodes == 0) {
        return {};
    }
    return format("racks      of %d nodes, ", racks.nodes) +
           (racks.gbps > 0 ? format("each %g GB/s to the others\n", racks.gbps)
                           : "each with as much to the others as its nodes send\n");
}

std::string print_links(const Links &links, bool known)
{
    if (!known) {
        return format("links      unknown, taken as GPUs behind PCIe without a way to each other: "
                      "%g GB/s through host memory, %g GB/s a node; name a topology with "
                      "--topology\n",
                      links.host_gbps, links.node_gbps);
    }
    std::string text = format("links      GPUs %g GB/s%s, ring %g, ", links.gpu_gbps,
                              links.switched ? " all to all" : "", links.ring_gbps);
    if (links.tree_gbps > 0) {
        text += format("trees %.4g (%d, depth %d), ", links.tree_gbps, links.tree_count,
                       links.tree_depth);
    }
    return text + format("host %g, network %g, GPU memory %g (GB/s)\n", links.host_gbps,
                         links.node_gbps, links.memory_gbps);
}

std::string print_costs(const std::vector<CostRow> &rows, const Choice &choice)
{
    std::string text = format("\n%-21s %11s\n", "algorithm", "price us");
    for (const CostRow &row : rows) {
        text += format("%-21s ", algorithm_name(row.algorithm));
        text += row.us > 0 ? format("%11.1f", row.us) : format("%11s %s", "-", row.why);
        text += row.can_run && row.algorithm == choice.algorithm ? "  <- serves the call"
                : row.given_up                                   ? "  given up"
                                                                 : "";
        text += "\n";
    }
    return text;
}

// The price of the same result for every size and placement.
std::string print_reproducible(Query query, double now_us, CallPriced &prices)
{
    if (query.reproducible) {
        return {};
    }
    query.reproducible = true;
    query.forced.reset();
    if (allowed(query) == 0) {
        return "\nreproducible sums: no algorithm that could run here adds in rank order\n";
    }
    const Algorithm best = prices.choose(query, nullptr).algorithm;
    const double us = prices.us(best, query.bytes);
    return format("\nreproducible sums would be served by %s: %.1f us, %.2f times as long\n",
                  algorithm_name(best), us, now_us > 0 ? us / now_us : 1);
}

std::string print_rounding(const Choice &choice, const Query &query, bool by_element)
{
    if (query.op != OpClass::kSum || query.element_bytes != 2) {
        return {};
    }
    const bool every = by_element || query.reproducible;
    return format("rounding   of half and bfloat16: %s\n",
                  every ? "after every addition"
                        : describe_rounding(choice.algorithm, query.nodes));
}

// The order of the ranks, or who owns how much, and what binding them to adapters would bring: only
// NVLinks pass on what another GPU sends.
std::string print_ways(const Choice &choice, const Query &query, const CallPriced &prices,
                       const Topology *topology)
{
    if (topology == nullptr) {
        return {};
    }
    std::string text;
    if (has(choice.algorithm, Trait::kInRing) && choice.by_links) {
        text = "rings      " + print_rings(prices.rings()) + "\n";
    } else if (choice.by_links) {
        const Groups &groups = prices.groups();
        text = print_slices(*topology, choice.near_only ? groups.near_slices : groups.slices);
    }
    if (query.nodes > 1 && (query.links.node_tree_gbps > 0 || query.links.switched)) {
        text += print_binding(*topology, most_gpus_on_a_node(query));
    }
    return text;
}

// Where the processor can map device memory, which a rank knows of itself only.
std::string print_cpu_path(const Choice &choice, const Query &query, const Table *table)
{
    if (!is(choice.algorithm, Form::kHost) || query.ranks == 1) {
        return {};
    }
    const bool measured = table != nullptr && table->cpu();
    const CpuLimits limits = measured ? *table->cpu() : kUsualCpuLimits;
    return format("cpu        %s, where GDRCopy or driver 13.3 maps the buffers, from their ninth "
                  "call on\n",
                  query.bytes <= std::min(limits.read_bytes, limits.write_bytes)
                      ? "the processor reads and writes them in place of copies"
                  : query.bytes <= limits.write_bytes
                      ? "one copy in place of two, the processor writes the sum"
                  : query.bytes <= limits.read_bytes
                      ? "one copy in place of two, the processor reads the vector"
                      : "two copies, as it is above both limits of the processor");
}

Json links_json(const Links &links, bool known)
{
    return {{"known", known},
            {"gpu_gbps", links.gpu_gbps},
            {"ring_gbps", links.ring_gbps},
            {"tree_gbps", links.tree_gbps},
            {"host_gbps", links.host_gbps},
            {"node_gbps", links.node_gbps},
            {"rack_nodes", links.racks.nodes},
            {"rack_gbps", links.racks.gbps},
            {"memory_gbps", links.memory_gbps}};
}

Json call_json(const Query &query)
{
    const NodeShape shape = node_shape(query);
    return {{"collective", "allreduce"},
            {"bytes", query.bytes},
            {"op", query.op == OpClass::kSum ? "sum" : "other"},
            {"element_bytes", query.element_bytes},
            {"memory", query.memory == CallMemory::kDevice ? "device" : "mixed"},
            {"reproducible", query.reproducible},
            {"ranks", query.ranks},
            {"nodes", query.nodes},
            {"ranks_per_node", {shape.min, shape.max}},
            {"ranks_per_gpu", query.ranks_per_gpu}};
}

Json choice_json(const Choice &choice, const Query &query, const JobTable &table)
{
    Json json;
    to_json(json, choice);
    json["source"] = source_name(choice.source);
    json["because"] = print_source(choice, query, table);
    return json;
}

Json costs_json(const std::vector<CostRow> &rows)
{
    Json list = Json::array();
    for (const CostRow &row : rows) {
        Json json = {{"algorithm", algorithm_name(row.algorithm)}, {"can_run", row.can_run}};
        if (row.us > 0) {
            json["us"] = row.us;
            json["given_up"] = row.given_up;
        } else {
            json["why"] = row.why;
        }
        list.push_back(std::move(json));
    }
    return list;
}

struct Explained { // for people, and as JSON
    std::string text;
    Json json;
};

// "4M and 8M": the sizes whose prices give those of the call.
std::string print_priced_sizes(std::size_t bytes, const char *between)
{
    const int below = PriceTable::size_below(bytes);
    return print_bytes(PriceTable::bytes_of(below)) + between +
           print_bytes(PriceTable::bytes_of(below + 1));
}

std::string print_given_up(const std::vector<CostRow> &rows, std::size_t bytes)
{
    return std::none_of(rows.begin(), rows.end(), [](const CostRow &row) { return row.given_up; })
               ? std::string()
               : format("\ngiven up: a job stops pricing an algorithm that is clearly slower than "
                        "another one at %s,\nand does not choose it, even if its price for this "
                        "size is lower\n",
                        print_priced_sizes(bytes, " or ").c_str());
}

Explained explain(std::size_t bytes, CallSetup &setup, const Topology *topology, bool by_element)
{
    const Query query = setup.at(bytes);
    const bool small = bytes <= setup.small_limit;
    const auto begin = std::chrono::steady_clock::now();
    const Choice choice = setup.choose(bytes);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    const auto costs = setup.prices.costs(query, choice);
    const std::vector<CostRow> rows = cost_rows(query, small, costs);
    Json json = {{"call", call_json(query)},
                 {"links", links_json(query.links, topology != nullptr)},
                 {"served_by", choice_json(choice, query, setup.by)},
                 {"algorithms", costs_json(rows)}};
    std::string text = print_call(query) + print_links(query.links, topology != nullptr) +
                       print_racks(query.links.racks) + setup.shares;
    text += "served by  " + describe(choice, setup.prices.rings().size()) + "\n";
    text += "because    " + print_source(choice, query, setup.by) + "\n";
    text += setup.by.note.empty() ? "" : "table      " + setup.by.note + "\n";
    text += print_ways(choice, query, setup.prices, topology);
    text += print_rounding(choice, query, by_element);
    const bool has_kernel = (query.available & algorithms_of(Form::kKernel)) != 0;
    if (small && has_kernel) {
        text += format("small      up to %zu bytes only %s may serve a call\n", setup.small_limit,
                       names_of(kSmallAlgorithms & ~kWhenAskedAlgorithms, " or ").c_str());
    }
    text += print_cpu_path(choice, query, setup.table());
    text += format("priced     in %.1f ms, by the prices of %s\n", took.count(),
                   print_priced_sizes(bytes, " and ").c_str());
    const double us = costs[static_cast<std::size_t>(choice.algorithm)].us;
    text += print_costs(rows, choice) + print_given_up(rows, bytes) +
            print_reproducible(query, us, setup.prices);
    return {std::move(text), std::move(json)};
}

// A collective that is not priced.
Explained explain_other(const CallRequest &call, const Query &query)
{
    std::string answer = explain_collective(call.collective, query);
    Json json = {{"call",
                  {{"collective", call.collective},
                   {"bytes", query.bytes},
                   {"ranks", query.ranks},
                   {"nodes", query.nodes}}},
                 {"answer", answer}};
    return {std::move(answer), std::move(json)};
}

template <class Explain> std::string at_all_sizes(const ExplainRequest &request,
                                                  const CallRequest &call, Explain explain_size)
{
    std::string text;
    Json json = json_document("hetcoll_info");
    json["explain"] = Json::array();
    for (const std::size_t bytes : call.bytes) {
        Explained one = explain_size(bytes);
        text += (text.empty() ? "" : "\n") + one.text;
        json["explain"].push_back(std::move(one.json));
    }
    return request.json ? json_text(json) : text;
}

} // namespace

void add_table_options(CommandLine &line, ExplainRequest &request)
{
    line.add_option("--table", request.table, "a tuning table").type_name("FILE");
    line.add_option("--machine", request.machine,
                    "with --table: the machine whose rules to take; default: as a job chooses")
        .type_name("NAME")
        .needs("--table");
    line.add_option("--small-limit", request.small_limit)
        .check(size(0, HETCOLL_MAX_SMALL_LIMIT))
        .type_name("SIZE")
        .as_parameter();
}

void add_explain_options(CommandLine &line, ExplainRequest &request, CallRequest &call)
{
    std::vector<std::string> collectives = collective_names();
    collectives.emplace_back("allreduce");
    add_call_options(line, call, collectives);
    add_table_options(line, request);
    line.add_option("--algorithm", request.algorithm).type_name("NAME").as_parameter();
    line.add_option("--op", request.op, "the operation (sum)").check(one_of({"sum", "other"}));
    line.add_option("--element", request.element_bytes,
                    "bytes of an element: 1, 2, 4, 8, 16 or 32 (4)")
        .check(one_of({"1", "2", "4", "8", "16", "32"}))
        .type_name("BYTES");
    line.add_option("--chunk", request.chunk_bytes, "chunk_bytes")
        .check(size(0, kLargestSize))
        .type_name("SIZE")
        .as_parameter();
    line.add_flag("--mixed", request.mixed,
                  "some ranks reduce host memory, the others device memory");
    line.add_option("--accumulate", request.accumulate)
        .check(one_of({"float", "element"}))
        .type_name("NAME")
        .as_parameter();
    line.add_flag("--reproducible", request.reproducible, "left folds in rank order only");
}

std::string print_source(const Choice &choice, const Query &query, const JobTable &by)
{
    const Table *const table = by.table ? &*by.table : nullptr;
    std::string text;
    if (choice.forced_unavailable) {
        text =
            format("the algorithm asked for, %s, cannot run here; ", algorithm_name(*query.forced));
    }
    switch (choice.source) {
    case ChoiceSource::kForced: return text + "it is asked for";
    case ChoiceSource::kTable: return text + "the rule in " + print_rule(*table, choice.rule);
    case ChoiceSource::kPrice: break;
    }
    return text + "the cheapest one, " +
           (table != nullptr  ? "the table has no rule for the call"
            : by.note.empty() ? "there is no table"
                              : "a job ignores the table");
}

Status check_explain(const CommandLine &line, const ExplainRequest &request,
                     const CallRequest &call)
{
    const bool shows_regions = call.bytes.empty();
    if (shows_regions && (call.collective != "allreduce" || !line.is_given("--topology"))) {
        return error(
            Errc::kInvalid, "how large a vector? write --bytes, for example --bytes 4M%s",
            call.collective == "allreduce" ? ", or only --topology for a table of all sizes" : "");
    }
    if (line.is_given("--accumulate") && (request.element_bytes != 2 || request.op != "sum")) {
        return error(Errc::kInvalid, "--accumulate is for sums of half and bfloat16: write "
                                     "--element 2, or leave it out");
    }
    if (Status status = check_collective(line, call); !status.ok()) {
        return status;
    }
    if (request.algorithm != "auto" && !find_algorithm(request.algorithm)) {
        return error(Errc::kInvalid,
                     "--algorithm '%s' is not one of hetcoll's: without it, all are listed",
                     request.algorithm.c_str());
    }
    if (shows_regions && !has_ranks(call)) {
        return {};
    }
    Result<Query> query = parse_call(call);
    if (!query.ok()) {
        return query.take_status();
    }
    const int on_node = node_shape(*query).max;
    if (query->ranks > kMostRanks || on_node > kMostOnNode) {
        return error(
            Errc::kInvalid,
            "calls are priced for up to %d ranks, up to %d on a node: %d, %d on a node, would "
            "take too long",
            kMostRanks, kMostOnNode, query->ranks, on_node);
    }
    return {};
}

Result<std::string> show_explanation(const ExplainRequest &request, const CallRequest &call,
                                     const Topology *topology)
{
    if (call.collective != "allreduce") {
        Result<Query> asked = parse_call(call);
        if (!asked.ok()) {
            return asked.take_status();
        }
        Result<Query> query = on_machine(*asked, topology);
        if (!query.ok()) {
            return query.take_status();
        }
        return at_all_sizes(request, call, [&](std::size_t bytes) {
            query->bytes = bytes;
            return explain_other(call, *query);
        });
    }
    if (call.bytes.empty()) {
        return show_regions(request, call, *topology);
    }
    Result<CallSetup> setup = set_up(request, call, topology);
    if (!setup.ok()) {
        return setup.take_status();
    }
    return at_all_sizes(request, call, [&](std::size_t bytes) {
        return explain(bytes, *setup, topology, request.accumulate == "element");
    });
}

std::string show_fingerprint(const Topology &topology, bool json)
{
    std::string text;
    Json document = json_document("hetcoll_info");
    document["fingerprint"] = Json::object();
    for (const auto &[name, value] : fingerprint_of(topology, {}).facts) {
        text += name + " " + value + "\n";
        document["fingerprint"][name] = value;
    }
    return json ? json_text(document) : text;
}

} // namespace hetcoll
