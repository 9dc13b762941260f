// Prices that communicators of this process have found out: the next one of the same shape on the
// same machine need not.
#pragma once

#include "price/price_table.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace hetcoll {

class KnownPrices {
public:
    // `machine`: PricedMachine::hash(). Null: not known.
    [[nodiscard]] std::shared_ptr<const PriceTable> find(std::uint64_t machine)
    {
        const std::lock_guard lock(mutex_);
        const auto known = tables_.find(machine);
        return known == tables_.end() ? nullptr : known->second;
    }
    void add(std::uint64_t machine, std::shared_ptr<const PriceTable> table)
    {
        const std::lock_guard lock(mutex_);
        if (tables_.size() == kMost) {
            tables_.clear();
        }
        tables_[machine] = std::move(table);
    }

private:
    static constexpr std::size_t kMost = 64; // of some kilobytes

    std::mutex mutex_;
    std::map<std::uint64_t, std::shared_ptr<const PriceTable>> tables_;
};

} // namespace hetcoll
