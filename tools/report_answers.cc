#include "measure/sizes.h"
#include "plan/describe.h"
#include "price/price_table.h"
#include "tools/info_explain.h"
#include "tools/info_prices.h"
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

// The ranks of one setup, and all that their calls are chosen by.
struct Facts {
    const JobTable by;
    CallPriced prices;
    std::size_t small_limit;

    [[nodiscard]] const Table *table() const { return by.table ? &*by.table : nullptr; }
};

// Returns where pieces of all sizes begin, and where the last one ends. Within a piece, the same
// algorithms may serve a call, the same rule is for it, and each price is a line.
std::vector<std::size_t> find_pieces(const Facts &facts)
{
    std::set<std::size_t> begins{facts.small_limit + 1, most_host_bytes(facts.small_limit) + 1};
    for (const std::size_t bytes : PriceTable::kBytes) {
        begins.insert({bytes, bytes + 1});
    }
    for (std::size_t bytes = PriceTable::kBytes.back(); bytes < kLargestSize; bytes *= 2) {
        begins.insert(bytes); // from some of them on there are more segments
    }
    for (int r = 0; facts.table() != nullptr && r < facts.table()->rule_count(); ++r) {
        const Range &range = facts.table()->rule(r).bytes;
        begins.insert(static_cast<std::size_t>(range.min));
        begins.insert(static_cast<std::size_t>(range.max) + 1);
    }
    begins.insert({1, kLargestSize + 1});
    return {begins.lower_bound(1), begins.upper_bound(kLargestSize + 1)};
}

// Calls of one kind on the ranks of one setup.
class Calls {
public:
    Calls(const Query &query, Facts &facts) : query_(query), facts_(facts)
    {
        const std::vector<std::size_t> pieces = find_pieces(facts);
        for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
            const std::size_t first = pieces[i], last = pieces[i + 1] - 1;
            const Choice at_first = choose(first);
            add(first, at_first);
            find_changes(first, at_first, last, choose(last));
            add_prices(first);
            add_prices(last);
        }
    }

    // [[first byte, algorithm, whether a rule says so, text, text], ...]. The texts are those after
    // "served by" and "because".
    [[nodiscard]] Json ranges(Distinct &texts) const
    {
        Json ranges = Json::array();
        for (const auto &[bytes, choice] : changes_) {
            ranges.push_back(
                {bytes, static_cast<int>(choice.algorithm),
                 choice.source == ChoiceSource::kTable ? 1 : 0,
                 texts.number_of(hetcoll::describe(choice, facts_.prices.rings().size())),
                 texts.number_of(print_source(choice, query_, facts_.by))});
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

    [[nodiscard]] Query at(std::size_t bytes) const
    {
        Query query = query_;
        query.bytes = bytes;
        return of_its_size(query, facts_.small_limit);
    }
    [[nodiscard]] Choice choose(std::size_t bytes)
    {
        return facts_.prices.choose(at(bytes), facts_.table());
    }
    void add(std::size_t bytes, const Choice &choice)
    {
        if (changes_.empty() || changes_.back().second != choice) {
            changes_.emplace_back(bytes, choice);
        }
    }
    // Both sizes are in one piece. There, prices are lines, so the cheapest algorithm at both ends
    // is the cheapest between them; and chunks that no price determines never shrink.
    void find_changes(std::size_t low, const Choice &at_low, std::size_t high,
                      const Choice &at_high)
    {
        if (at_low == at_high) {
            return;
        }
        if (high - low == 1) {
            add(high, at_high);
            return;
        }
        const std::size_t middle = low + (high - low) / 2;
        const Choice at_middle = choose(middle);
        find_changes(low, at_low, middle, at_middle);
        find_changes(middle, at_middle, high, at_high);
    }
    void add_prices(std::size_t bytes)
    {
        const Query query = at(bytes);
        const auto costs = facts_.prices.costs(query, facts_.prices.choose(query, facts_.table()));
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

    Query query_;
    Facts &facts_;
    std::vector<std::pair<std::size_t, Choice>> changes_; // by first number of bytes
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
    Facts facts{std::move(*by), std::move(*prices), input.small_limit};
    for (const Query &kind : kinds) {
        query->element_bytes = kind.element_bytes;
        query->op = kind.op;
        query->memory = kind.memory;
        query->reproducible = kind.reproducible;
        const Calls calls(*query, facts);
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
