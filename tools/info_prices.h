// The prices that hetcoll_info chooses by, for the call of the command line: those of a job.
#pragma once

#include "base/status.h"
#include "choice/call_prices.h"

#include <array>
#include <memory>
#include <vector>

namespace hetcoll {

class CallPriced {
public:
    // On nodes like `topology`; null: nothing is known of the links. `shares`: by rank.
    [[nodiscard]] static Result<CallPriced> of(const Topology *topology, const Query &query,
                                               std::vector<int> shares);

    [[nodiscard]] Choice choose(const Query &query, const Table *table);
    // Prices of the algorithms that the query lets run, whatever it forces; `choice` serves it.
    struct Cost {
        double us = 0; // 0: it has no price
        bool given_up = false;
    };
    [[nodiscard]] std::array<Cost, kAlgorithmCount> costs(const Query &query, const Choice &choice);
    // The price of the algorithm that was chosen last.
    [[nodiscard]] double us(Algorithm chosen, std::size_t bytes) const noexcept
    {
        return prices_.table().us(chosen, bytes);
    }
    // The price that chose the call before, near its size.
    [[nodiscard]] const PriceTable &table() const noexcept { return prices_.table(); }
    [[nodiscard]] const RingOrders &rings() const noexcept { return machine_->ranks.rings; }
    [[nodiscard]] const Groups &groups() const noexcept { return machine_->ranks.groups; }

private:
    CallPriced(std::shared_ptr<const PricedMachine> machine, bool known, std::vector<int> shares);
    [[nodiscard]] CallPrices::Means means_of(const Query &query) const;

    std::shared_ptr<const PricedMachine> machine_;
    bool known_; // the links
    std::vector<int> shares_;
    CallPrices prices_;
};

} // namespace hetcoll
