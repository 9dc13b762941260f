// The first message of a communicator's first call: is every rank able to begin? This is the part
// of a rank that is not, which needs no memory but this; the others' is in NodeGroup::make_pages().
#pragma once

#include "engine/meeting/exchange.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

class RollCall {
public:
    // Combined by OR: two ranks differ in every bit that ends up set in both.
    struct Settings {
        std::uint64_t set, unset;
    };

    // Until step() returns something else than kPending this stays where it is.
    void start(const hetcoll_p2p &all, int tag) noexcept;
    [[nodiscard]] Progress step() noexcept { return exchange_.step(); }

private:
    Exchange exchange_;
    alignas(8) std::byte mine_[sizeof(Settings) + Exchange::kFlagBytes];
    alignas(8) std::byte theirs_[sizeof(Settings) + Exchange::kFlagBytes];
};

} // namespace hetcoll
