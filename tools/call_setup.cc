#include "tools/call_setup.h"

#include "measure/sizes.h"
#include "price/price_table.h"
#include "tools/info_explain.h"

#include <set>
#include <utility>

namespace hetcoll {
namespace {

Query parse_query(const ExplainRequest &request, Query query)
{
    query.op = request.op == "sum" ? OpClass::kSum : OpClass::kOther;
    query.element_bytes = request.element_bytes;
    query.memory = request.mixed ? CallMemory::kMixed : CallMemory::kDevice;
    query.reproducible = request.reproducible;
    query.chunk_bytes = request.chunk_bytes;
    if (request.algorithm != "auto") {
        query.forced = find_algorithm(request.algorithm);
    }
    return query;
}

// The effect of coll_hetcoll_shares on the ranks of the call.
struct Shares {
    std::string text; // empty: it is off
    std::vector<int> of_ranks;
};
Result<Shares> add_shares(const CallRequest &request, const Topology *topology, Query &query)
{
    Result<RankShares> shares = shares_of(request, query, topology, query.links);
    if (!shares.ok()) {
        return shares.take_status();
    }
    std::string text;
    for (const int share : shares->shares) {
        text += (text.empty() ? "shares     " : ",") + std::to_string(share);
    }
    if (!text.empty()) {
        query.available |= algorithms_that_need(Needs::kShares);
        text += format(", a vector at %.4g GB/s\n", shares->vector_gbps());
    } else if (request.shares != "off") {
        text = std::string("shares     none: ") + shares->why_none + "\n";
    }
    return Shares{std::move(text), std::move(shares->shares)};
}

// No table without --table.
Result<JobTable> select_table(const ExplainRequest &request, const Query &query,
                              const Topology *topology)
{
    if (request.table.empty()) {
        return JobTable{};
    }
    Result<TableFile> file = read_table(request.table);
    if (!file.ok()) {
        return file.take_status();
    }
    return table_of_call(*file, request.machine, query, topology, request.driver);
}

void add_range(std::size_t bytes, const Choice &choice, std::vector<ServedRange> &ranges)
{
    if (ranges.empty() || ranges.back().choice != choice) {
        ranges.push_back({bytes, choice});
    }
}

// Both sizes are in one piece. There, prices are lines, so the cheapest algorithm at both ends is
// the cheapest between them; and chunks that no price determines never shrink.
void find_changes(CallSetup &setup, const ServedRange &low, const ServedRange &high,
                  std::vector<ServedRange> &ranges)
{
    if (low.choice == high.choice) {
        return;
    }
    if (high.first_bytes - low.first_bytes == 1) {
        add_range(high.first_bytes, high.choice, ranges);
        return;
    }
    const std::size_t middle_bytes = low.first_bytes + (high.first_bytes - low.first_bytes) / 2;
    const ServedRange middle{middle_bytes, setup.choose(middle_bytes)};
    find_changes(setup, low, middle, ranges);
    find_changes(setup, middle, high, ranges);
}

} // namespace

Query CallSetup::at(std::size_t bytes) const
{
    Query sized = query;
    sized.bytes = bytes;
    sized.available =
        at_size(sized.memory == CallMemory::kMixed ? kMessageAlgorithms : sized.available, bytes,
                small_limit, true);
    if (sized.aggregators > 0 && bytes > small_limit) {
        sized.available |= algorithms_of(Form::kServers);
    }
    return sized;
}

Result<CallSetup> set_up(const ExplainRequest &request, const CallRequest &call,
                         const Topology *topology)
{
    Result<Query> asked = parse_call(call);
    if (!asked.ok()) {
        return asked.take_status();
    }
    Result<Query> query = on_machine(parse_query(request, *asked), topology);
    if (!query.ok()) {
        return query.take_status();
    }
    Result<Shares> shares = add_shares(call, topology, *query);
    if (!shares.ok()) {
        return shares.take_status();
    }
    Result<JobTable> by = select_table(request, *query, topology);
    if (!by.ok()) {
        return by.take_status();
    }
    Result<CallPriced> prices = CallPriced::of(topology, *query, std::move(shares->of_ranks));
    if (!prices.ok()) {
        return prices.take_status();
    }
    return CallSetup{*query, std::move(*by), std::move(*prices), request.small_limit,
                     std::move(shares->text)};
}

const char *source_name(ChoiceSource source)
{
    return source == ChoiceSource::kForced  ? "forced"
           : source == ChoiceSource::kTable ? "table"
                                            : "price";
}

std::vector<std::size_t> find_pieces(const CallSetup &setup)
{
    std::set<std::size_t> begins{setup.small_limit + 1, most_host_bytes(setup.small_limit) + 1};
    for (const std::size_t bytes : PriceTable::kBytes) {
        begins.insert({bytes, bytes + 1});
    }
    for (std::size_t bytes = PriceTable::kBytes.back(); bytes < kLargestSize; bytes *= 2) {
        begins.insert(bytes); // from some of them on there are more segments
    }
    const Table *const table = setup.table();
    for (int r = 0; table != nullptr && r < table->rule_count(); ++r) {
        const Range &range = table->rule(r).bytes;
        begins.insert(static_cast<std::size_t>(range.min));
        begins.insert(static_cast<std::size_t>(range.max) + 1);
    }
    begins.insert({1, kLargestSize + 1});
    return {begins.lower_bound(1), begins.upper_bound(kLargestSize + 1)};
}

std::vector<ServedRange> served_ranges(CallSetup &setup)
{
    const std::vector<std::size_t> pieces = find_pieces(setup);
    std::vector<ServedRange> ranges;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
        const ServedRange first{pieces[i], setup.choose(pieces[i])};
        const ServedRange last{pieces[i + 1] - 1, setup.choose(pieces[i + 1] - 1)};
        add_range(first.first_bytes, first.choice, ranges);
        find_changes(setup, first, last, ranges);
    }
    return ranges;
}

} // namespace hetcoll
