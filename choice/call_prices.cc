#include "choice/call_prices.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

std::size_t index_of(Algorithm algorithm) { return static_cast<std::size_t>(algorithm); }

} // namespace

CallPrices::Own::Own(PricedMachine priced)
    : machine(std::move(priced)), prices(machine.cluster, machine.ranks)
{
}

CallPrices::Weighted::Weighted(const PricedMachine &machine, std::vector<int> shares_of_ranks,
                               int late)
    : shares(std::move(shares_of_ranks)),
      whole(machine.cluster, machine.ranks, {.shares = shares, .late = late}),
      rest(machine.cluster, machine.ranks, {.shares = shares, .late = late, .early_is_done = true})
{
}

CallPrices::Own &CallPrices::own(bool mapped)
{
    std::unique_ptr<Own> &own = mapped ? mapped_ : unmapped_;
    if (own == nullptr) {
        PricedMachine machine = machine_();
        if (!mapped) {
            unmap(machine.ranks);
        }
        own = std::make_unique<Own>(std::move(machine));
    }
    return *own;
}

const PriceTable::Column &CallPrices::together(int size, AlgorithmSet set, bool mapped)
{
    Own &all = own(mapped);
    set &= all.prices.set();
    PriceTable::Column &column = all.together[set].column(size);
    const bool is_new = std::none_of(column.begin(), column.end(),
                                     [](const PricedCell &cell) { return cell.us > 0; });
    if (is_new) {
        column = all.prices.of_size(size, set);
    }
    return column;
}

PricedCell CallPrices::alone(Algorithm algorithm, int size, bool mapped)
{
    Own &all = own(mapped);
    PricedCell &cell = all.alone.column(size)[index_of(algorithm)];
    if (!(cell.us > 0)) {
        const AlgorithmSet set = all.prices.set() & bit(algorithm);
        cell = all.prices.of_size(size, set)[index_of(algorithm)];
    }
    return cell;
}

double CallPrices::us_alone(Algorithm algorithm, std::size_t bytes, bool mapped)
{
    const int below = PriceTable::size_below(bytes);
    for (const int size : {below, below + 1}) {
        (void)alone(algorithm, size, mapped);
    }
    return own(mapped).alone.us(algorithm, bytes);
}

// A rank that is late by so much has that much less to wait for, but no less than what is left when
// the others have added up theirs.
PricedCell CallPrices::weighted(Algorithm algorithm, int size, const Means &means)
{
    std::unique_ptr<Weighted> &known = weighted_[{means.mapped, means.late}];
    if (known == nullptr) {
        known = std::make_unique<Weighted>(own(means.mapped).machine, means.shares, means.late);
    }
    const auto price = [algorithm, size](Prices &prices, PriceTable &table) {
        PricedCell &cell = table.column(size)[index_of(algorithm)];
        if (!(cell.us > 0)) {
            const AlgorithmSet set = prices.set() & bit(algorithm);
            cell = prices.of_size(size, set)[index_of(algorithm)];
        }
        return cell;
    };
    PricedCell cell = price(known->whole, known->of_whole);
    if (means.late >= 0) {
        const float rest_us = price(known->rest, known->of_rest).us;
        cell.us = std::max(rest_us, cell.us - static_cast<float>(means.late_us));
    }
    return cell;
}

// Those of `compared` are given up where another one costs far less.
void CallPrices::find(std::size_t bytes, AlgorithmSet compared, AlgorithmSet exactly,
                      const Means &means)
{
    const int below = PriceTable::size_below(bytes);
    for (const int size : {below, below + 1}) {
        PriceTable::Column &column = found_->column(size);
        column = compared == 0           ? PriceTable::Column{}
                 : means.told != nullptr ? means.told->column(size)
                                         : together(size, compared, means.mapped);
        for (int i = 0; i < kAlgorithmCount; ++i) {
            const auto algorithm = static_cast<Algorithm>(i);
            if (contains(exactly, algorithm)) {
                column[index_of(algorithm)] = needs(algorithm, Needs::kShares)
                                                  ? weighted(algorithm, size, means)
                                                  : alone(algorithm, size, means.mapped);
            }
        }
    }
}

// Few algorithms serve reproducible sums: others may cost far less.
Choice CallPrices::choose(const Query &query, const Table *table, const Means &means)
{
    if (found_ == nullptr) {
        found_ = std::make_unique<PriceTable>();
    }
    if ((query.available & algorithms_of(Form::kServers)) != 0) { // joined meanwhile
        Query &known = own(means.mapped).machine.ranks.query;
        known.aggregators = query.aggregators;
        known.slices = query.slices;
    }
    const AlgorithmSet set = allowed(query),
                       compared = told_of(means.mapped ? kAllAlgorithms : set);
    const Choice given = hetcoll::choose(query, table);
    if (given.source != ChoiceSource::kPrice) {
        find(query.bytes, 0, bit(given.algorithm), means);
    } else if (query.reproducible) {
        find(query.bytes, 0, set, means);
    } else {
        find(query.bytes, compared, set & static_cast<AlgorithmSet>(~told_of(set)), means);
    }
    return hetcoll::choose(query, table, found_.get());
}

void CallPrices::forget() noexcept
{
    mapped_.reset();
    unmapped_.reset();
    weighted_.clear();
}

} // namespace hetcoll
