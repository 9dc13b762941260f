#include "machine/topology_links.h"
#include "plan/parts.h"
#include "tools/info_explain.h"
#include "tools/info_prices.h"
#include "tools/report_parts.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kMostSetups = 24; // some 8 KB each
constexpr int kMostRanks = 4096;        // that a price does not take long for

struct RanksOn {
    int nodes, ranks;

    auto operator<=>(const RanksOn &) const = default;
};

Json range_json(const Range &range)
{
    return {range.min, range.max == Range::kInfinite ? Json() : Json(range.max)};
}

// What the choice among algorithms knows at one size, as PriceTable has it.
class Cells {
public:
    void take(const PriceTable &from, int size, Algorithm algorithm)
    {
        const auto index = static_cast<std::size_t>(algorithm);
        const PricedCell &cell = from.column(size)[index];
        if (cell.us > 0) {
            table_.column(size)[index] = cell;
        }
    }
    // [size][algorithm]: [us, chunk, between, ways], us -1 if it is infinite; null: no price, or
    // the one that `known` has.
    [[nodiscard]] Json json(const Cells *known) const
    {
        Json sizes = Json::array();
        for (int size = 0; size < PriceTable::kSizes; ++size) {
            Json row = Json::array();
            for (std::size_t i = 0; i < kAlgorithmCount; ++i) {
                const PricedCell &cell = table_.column(size)[i];
                const bool same = known != nullptr && is_same(cell, known->table_.column(size)[i]);
                row.push_back(cell.us > 0 && !same ? cell_json(cell) : Json());
            }
            while (!row.empty() && row.back().is_null()) {
                row.pop_back();
            }
            sizes.push_back(std::move(row));
        }
        return sizes;
    }

private:
    static bool is_same(const PricedCell &a, const PricedCell &b)
    {
        return a.us == b.us && a.way == b.way;
    }
    static Json cell_json(const PricedCell &cell)
    {
        // A float has nine digits.
        const double us =
            std::isinf(cell.us) ? -1 : std::stod(format("%.9g", static_cast<double>(cell.us)));
        return {us, (cell.way & 0xff) * kEncodedChunkUnit, cell.way >> 8 & 0xff, cell.way >> 16};
    }

    PriceTable table_;
};

Query query_of(const RanksOn &ranks)
{
    Query query;
    query.nodes = ranks.nodes;
    query.ranks = ranks.ranks;
    const NodeShape shape = node_shape(query);
    query.slices = query.nodes > 1 && shape.min == shape.max ? shape.max : 1;
    return query;
}

// Asks for prices as calls do: between every two sizes of the table, of all that may serve there
// together, and of each that is forced.
Result<Json> priced(const Topology &topology, const RanksOn &ranks, std::size_t small_limit)
{
    Query query = query_of(ranks);
    Result<NodesView> view = view_nodes(topology, query);
    if (!view.ok()) {
        return view.take_status();
    }
    Result<CallPriced> prices = CallPriced::of(&topology, query, {});
    if (!prices.ok()) {
        return prices.take_status();
    }
    query.links = view->links;
    Cells together, alone;
    for (int size = 0; size + 1 < PriceTable::kSizes; ++size) {
        query.bytes = PriceTable::bytes_of(size) + 1;
        query.available = 0;
        for (const std::size_t bytes :
             {query.bytes - 1, query.bytes, PriceTable::bytes_of(size + 1)}) {
            query.available |= at_size(view->available, bytes, small_limit, true);
        }
        query.forced.reset();
        (void)prices->choose(query, nullptr);
        const PriceTable compared = prices->table();
        for (int i = 0; i < kAlgorithmCount; ++i) {
            const auto algorithm = static_cast<Algorithm>(i);
            together.take(compared, size, algorithm);
            together.take(compared, size + 1, algorithm);
            if (contains(query.available, algorithm)) {
                query.forced = algorithm;
                (void)prices->choose(query, nullptr);
                alone.take(prices->table(), size, algorithm);
                alone.take(prices->table(), size + 1, algorithm);
            }
        }
    }
    const NodeShape shape = node_shape(query);
    const auto at = [&](std::size_t bytes) {
        return at_size(view->available, bytes, small_limit, true);
    };
    return Json{{"ranks", query.ranks},
                {"nodes", query.nodes},
                {"onNode", {shape.min, shape.max}},
                {"small", at(0)},
                {"middle", at(small_limit + 1)},
                {"large", at(std::max(small_limit, kMostHostBytes) + 1)},
                {"rings", prices->rings().size()},
                {"together", together.json(nullptr)},
                {"alone", alone.json(&together)}};
}

std::set<RanksOn> setups_of(int gpus, const std::vector<int> &nodes,
                            const std::vector<Measurements> &measurements)
{
    std::set<RanksOn> setups;
    for (const int count : nodes) {
        if (count > 1 && count <= kMostRanks / std::max(gpus, 1)) {
            setups.insert({count, count * gpus});
        }
    }
    for (const Measurements &measured : measurements) {
        for (const Sample &sample : measured.samples) {
            const Setup &setup = sample.setup;
            if (setup.ranks_per_gpu == 1 && setup.ranks_per_node_max <= gpus &&
                setup.ranks <= kMostRanks &&
                setup.ranks_per_node_max - setup.ranks_per_node_min <= 1) {
                setups.insert({setup.nodes, setup.ranks});
            }
        }
    }
    for (int ranks = gpus; ranks >= 2 && setups.size() < kMostSetups; --ranks) {
        setups.insert({1, ranks});
    }
    while (setups.size() > kMostSetups) {
        setups.erase(std::prev(setups.end()));
    }
    return setups;
}

} // namespace

Json report_algorithms(std::size_t small_limit)
{
    Json names = Json::array();
    for (const AlgorithmRow &row : kAlgorithmRows) {
        names.push_back(row.name);
    }
    const AlgorithmSet schedules =
        algorithms_where([](const AlgorithmRow &row) { return row.is_schedule(); });
    return {
        {"names", names},
        {"schedules", schedules},
        {"leftFold", kReproducibleAlgorithms},
        {"whenAsked", kWhenAskedAlgorithms},
        {"host", static_cast<int>(*find_algorithm("host"))},
        {"hierarchical", static_cast<int>(*find_algorithm("hierarchical"))},
        {"ring", static_cast<int>(*find_algorithm("ring"))},
        {"tree", static_cast<int>(*find_algorithm("tree"))},
        {"sideParts", kSideParts},
        {"sizes", std::vector<std::size_t>(PriceTable::kBytes.begin(), PriceTable::kBytes.end())},
        {"leastRise", PriceTable::kLeastRise},
        {"smallLimit", small_limit},
        {"middleLimit", most_host_bytes(small_limit)},
        {"mostChannels", kMostPricedChannels}};
}

Json report_table(const Table &table)
{
    Json lists = Json::array();
    const RuleSet *last = nullptr;
    for (int r = 0; r < table.rule_count(); ++r) {
        const RuleSet &set = table.set_of(r);
        if (&set != last) {
            last = &set;
            Json list = {{"ranks", range_json(set.ranks)},
                         {"nodes", range_json(set.nodes)},
                         {"onNode", range_json(set.ranks_per_node)},
                         {"onGpu", range_json(set.ranks_per_gpu)},
                         {"element", range_json(set.element_bytes)},
                         {"op", Json()},
                         {"memory", Json()},
                         {"rules", Json::array()}};
            if (set.op) {
                list["op"] = *set.op == OpClass::kSum ? "sum" : "other";
            }
            if (set.memory) {
                list["memory"] = *set.memory == CallMemory::kDevice ? "device" : "mixed";
            }
            lists.push_back(std::move(list));
        }
        const SizeRule &rule = table.rule(r);
        Json row = {{"bytes", range_json(rule.bytes)},
                    {"algorithm", static_cast<int>(rule.algorithm)},
                    {"chunk", rule.chunk_bytes},
                    {"between", Json()},
                    {"text", print_rule(table, r)}};
        if (rule.between_nodes) {
            row["between"] = static_cast<int>(*rule.between_nodes);
        }
        lists.back()["rules"].push_back(std::move(row));
    }
    return {{"path", table.path()}, {"machine", table.machine()}, {"lists", std::move(lists)}};
}

Result<Json> report_prices(const Topology &topology, const std::vector<int> &nodes,
                           const std::vector<Measurements> &measurements, std::size_t small_limit)
{
    Json setups = Json::array();
    const int gpus = static_cast<int>(topology.gpus().size());
    for (const RanksOn &ranks : setups_of(gpus, nodes, measurements)) {
        Result<Json> setup = priced(topology, ranks, small_limit);
        if (!setup.ok()) {
            return setup.take_status();
        }
        setups.push_back(std::move(*setup));
    }
    return setups;
}

} // namespace hetcoll
