#include "plan/describe.h"
#include "tools/call_setup.h"
#include "tools/info_explain.h"
#include "tools/report_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kMostSetups = 24; // some 5 KB each
constexpr int kMostRanks = 4096;        // that a price does not take long for

struct RanksOn {
    int nodes, ranks;

    auto operator<=>(const RanksOn &) const = default;
};

// Keeps each of equal values once.
class Distinct {
public:
    [[nodiscard]] std::size_t number_of(const Json &value)
    {
        const auto [place, is_new] = numbers_.emplace(value.line(), values_.size());
        if (is_new) {
            values_.push_back(value);
        }
        return place->second;
    }
    [[nodiscard]] const Json &values() const { return values_; }

private:
    std::map<std::string, std::size_t> numbers_;
    Json values_ = Json::array();
};

// All that hetcoll_info explain tells apart, but sizes and ranks.
std::vector<Query> all_kinds()
{
    std::vector<Query> kinds;
    for (const CallMemory memory : {CallMemory::kDevice, CallMemory::kMixed}) {
        for (const bool reproducible : {false, true}) {
            for (const OpClass op : {OpClass::kSum, OpClass::kOther}) {
                for (const std::size_t element_bytes : {1, 2, 4, 8, 16, 32}) {
                    Query kind;
                    kind.element_bytes = element_bytes;
                    kind.op = op;
                    kind.memory = memory;
                    kind.reproducible = reproducible;
                    kinds.push_back(kind);
                }
            }
        }
    }
    return kinds;
}

// Calls of one kind on the ranks of one setup.
class Calls {
public:
    explicit Calls(CallSetup &setup) : setup_(setup), ranges_(served_ranges(setup))
    {
        const std::vector<std::size_t> pieces = find_pieces(setup);
        for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
            add_prices(pieces[i]);
            add_prices(pieces[i + 1] - 1);
        }
    }

    // [[first byte, algorithm, whether a rule says so, text, text], ...]. The texts are those after
    // "served by" and "because".
    [[nodiscard]] Json ranges(Distinct &texts) const
    {
        Json ranges = Json::array();
        for (const auto &[bytes, choice] : ranges_) {
            ranges.push_back(
                {bytes, static_cast<int>(choice.algorithm),
                 choice.source == ChoiceSource::kTable ? 1 : 0,
                 texts.number_of(hetcoll::describe(choice, setup_.prices.rings().size())),
                 texts.number_of(print_source(choice, setup_.query, setup_.by))});
        }
        return ranges;
    }

    // {"sizes": [bytes, ...], "us": [[algorithm, price at each of these sizes...], ...]}. Between
    // two sizes a price is a line; 0: there is none; negative: given up.
    [[nodiscard]] Json prices() const
    {
        Json sizes = Json::array(), prices = Json::array();
        for (const Prices &at : prices_) {
            sizes.push_back(at.bytes);
        }
        for (std::size_t i = 0; i < kAlgorithmCount; ++i) {
            Json row = {i};
            for (const Prices &at : prices_) {
                row.push_back(std::stod(format("%.6g", at.us[i])));
            }
            if (std::any_of(prices_.begin(), prices_.end(),
                            [i](const Prices &at) { return at.us[i] != 0; })) {
                prices.push_back(std::move(row));
            }
        }
        return {{"sizes", std::move(sizes)}, {"us", std::move(prices)}};
    }

private:
    struct Prices {
        std::size_t bytes;
        std::array<double, kAlgorithmCount> us;
    };

    void add_prices(std::size_t bytes)
    {
        const auto costs = setup_.prices.costs(setup_.at(bytes), setup_.choose(bytes));
        Prices prices{.bytes = bytes, .us = {}};
        for (std::size_t i = 0; i < kAlgorithmCount; ++i) {
            const bool known = costs[i].us > 0 && std::isfinite(costs[i].us);
            prices.us[i] = !known ? 0 : costs[i].given_up ? -costs[i].us : costs[i].us;
        }
        while (prices_.size() >= 2 && on_line(*(prices_.end() - 2), prices_.back(), prices)) {
            prices_.pop_back();
        }
        if (prices_.empty() || prices_.back().bytes != bytes) {
            prices_.push_back(prices);
        }
    }
    // Whether the one between them says nothing new.
    [[nodiscard]] static bool on_line(const Prices &low, const Prices &between, const Prices &high)
    {
        const double part = static_cast<double>(between.bytes - low.bytes) /
                            static_cast<double>(std::max<std::size_t>(high.bytes - low.bytes, 1));
        for (std::size_t i = 0; i < kAlgorithmCount; ++i) {
            const double on_line = low.us[i] + part * (high.us[i] - low.us[i]);
            if (std::abs(on_line - between.us[i]) > 1e-7 * std::abs(between.us[i])) {
                return false;
            }
        }
        return true;
    }

    CallSetup &setup_;
    std::vector<ServedRange> ranges_;
    std::vector<Prices> prices_;
};

struct Found {
    Distinct answers, prices, texts;
};

Result<Json> report_setup(const ReportInput &input, const RanksOn &ranks,
                          const std::vector<Query> &kinds, Found &found)
{
    CallRequest request;
    request.ranks = ranks.ranks;
    request.nodes = ranks.nodes;
    Result<Query> asked = parse_call(request);
    if (!asked.ok()) {
        return asked.take_status();
    }
    Result<Query> query = on_machine(*asked, input.topology);
    if (!query.ok()) {
        return query.take_status();
    }
    Result<CallPriced> prices = CallPriced::of(input.topology, *query, {});
    if (!prices.ok()) {
        return prices.take_status();
    }
    Result<JobTable> by = JobTable{};
    if (input.file != nullptr) {
        by = table_of_call(*input.file, input.machine, *query, input.topology, input.driver);
        if (!by.ok()) {
            return by.take_status();
        }
    }
    Json setup = {{"ranks", query->ranks},
                  {"nodes", query->nodes},
                  {"note", by->note},
                  {"answers", Json::array()}};
    CallSetup calls_of{*query, std::move(*by), std::move(*prices), input.small_limit};
    for (const Query &kind : kinds) {
        calls_of.query.element_bytes = kind.element_bytes;
        calls_of.query.op = kind.op;
        calls_of.query.memory = kind.memory;
        calls_of.query.reproducible = kind.reproducible;
        const Calls calls(calls_of);
        setup["answers"].push_back(
            found.answers.number_of({{"ranges", calls.ranges(found.texts)},
                                     {"prices", found.prices.number_of(calls.prices())}}));
    }
    return setup;
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

Status report_answers(const ReportInput &input, Json &data)
{
    const std::vector<Query> kinds = all_kinds();
    Found found;
    for (const Query &kind : kinds) {
        data["kinds"].push_back(
            {{"element", kind.element_bytes},
             {"op", kind.op == OpClass::kSum ? "sum" : "other"},
             {"memory", kind.memory == CallMemory::kDevice ? "device" : "mixed"},
             {"reproducible", kind.reproducible}});
    }
    const int gpus = static_cast<int>(input.topology->gpus().size());
    for (const RanksOn &ranks : setups_of(gpus, input.nodes, input.measurements)) {
        Result<Json> setup = report_setup(input, ranks, kinds, found);
        if (!setup.ok()) {
            return setup.take_status();
        }
        data["setups"].push_back(std::move(*setup));
    }
    data["answers"] = found.answers.values();
    data["prices"] = found.prices.values();
    data["texts"] = found.texts.values();
    return {};
}

} // namespace hetcoll
