// The prices that one call is chosen by: those that a communicator's ranks have told each other,
// and what these lack, which is found when a call asks for it. The inputs are the same on every
// rank, and in hetcoll_info, and prices have the same bits everywhere. So all choose the same.
//
// They lack calls whose memory is not mapped, reproducible sums, aggregators, shares, and
// what is forced, or in the tuning table, though it is far from the best.
#pragma once

#include "choice/choose.h"
#include "machine/placed.h"
#include "price/prices.h"
#include "tuning/table.h"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace hetcoll {

class CallPrices {
public:
    // Finds the machine when something has to be priced.
    using FindMachine = std::function<PricedMachine()>;
    explicit CallPrices(FindMachine machine) : machine_(std::move(machine)) {}

    struct Means {
        bool mapped = true; // memory of other ranks where the machine lets them, else messages
        const PriceTable *told = nullptr; // of mapped memory, by other ranks too; null: find them
        std::vector<int> shares{};        // by rank, of kWeighted
        int late = -1;                    // the rank that comes last
        double late_us = 0;
    };
    // As choose() does. Throws std::bad_alloc if there is no memory to find a price.
    [[nodiscard]] Choice choose(const Query &query, const Table *table, const Means &means);
    // The price that chose the last call, near its size: a way that is forced, or in the table, is
    // not compared with others. Requires that there was one.
    [[nodiscard]] const PriceTable &table() const noexcept { return *found_; }
    // The price of an algorithm but kWeighted, even where others cost far less.
    [[nodiscard]] double us_alone(Algorithm algorithm, std::size_t bytes, bool mapped);
    // The machine has changed.
    void forget() noexcept;

private:
    // Prices of a machine, found one by one.
    struct Own {
        explicit Own(PricedMachine priced);
        PricedMachine machine;
        Prices prices;
        std::map<AlgorithmSet, PriceTable> together; // each given up where others are far better
        PriceTable alone;                            // by each for itself
    };
    struct Weighted {
        Weighted(const PricedMachine &machine, std::vector<int> shares_of_ranks, int late);
        std::vector<int> shares;
        Prices whole, rest; // the late rank comes with the others, or after they have added up
        PriceTable of_whole, of_rest;
    };

    [[nodiscard]] Own &own(bool mapped);
    [[nodiscard]] const PriceTable::Column &together(int size, AlgorithmSet set, bool mapped);
    [[nodiscard]] PricedCell alone(Algorithm algorithm, int size, bool mapped);
    [[nodiscard]] PricedCell weighted(Algorithm algorithm, int size, const Means &means);
    void find(std::size_t bytes, AlgorithmSet compared, AlgorithmSet exactly, const Means &means);

    FindMachine machine_;
    std::unique_ptr<Own> mapped_, unmapped_;
    // By whether memory is mapped, and by the late rank.
    std::map<std::pair<bool, int>, std::unique_ptr<Weighted>> weighted_;
    std::unique_ptr<PriceTable> found_; // near the size of the last call; null: there was none
};

// The message of a communicator's ranks about all that they have priced: what serves calls
// on mapped memory that ask for nothing else.
[[nodiscard]] constexpr AlgorithmSet told_of(AlgorithmSet set) noexcept
{
    constexpr AlgorithmSet kNeedsMore =
        algorithms_of(Form::kServers) | algorithms_that_need(Needs::kShares);
    return set & static_cast<AlgorithmSet>(~(kNeedsMore | kWhenAskedAlgorithms));
}

} // namespace hetcoll
