// The memory of a communicator's meetings by messages.
#pragma once

#include "engine/meeting/control_page.h"
#include "engine/meeting/exchange.h"

#include <cstddef>
#include <new>
#include <type_traits>

namespace hetcoll {

// An exchange, and its messages: this rank's and another's. In pages of their own: ranks that meet
// in the control page never touch them, so there they take no memory.
class Messages {
public:
    Messages(); // throws std::bad_alloc
    ~Messages();
    Messages(const Messages &) = delete;
    Messages &operator=(const Messages &) = delete;

    // Makes a new exchange, which replaces the last one; and returns it.
    [[nodiscard]] Exchange &new_exchange() noexcept { return *new (pages()) Exchange; }
    [[nodiscard]] Exchange &exchange() const noexcept
    {
        return *std::launder(reinterpret_cast<Exchange *>(pages()));
    }
    // For flags, with Exchange::kHeaderBytes before them, while `mine` has a vector.
    [[nodiscard]] std::byte *flags_alone() const noexcept
    {
        return pages() + kExchangeBytes + Exchange::kHeaderBytes;
    }

    std::byte *const mine, *const theirs;

private:
    static constexpr std::size_t kBefore = 64; // so that the payload is aligned as this is
    static_assert(kBefore >= Exchange::kHeaderBytes);
    // Before the messages: the exchange, and flags_alone() with what is before them.
    static constexpr std::size_t kExchangeBytes = (sizeof(Exchange) + 63) / 64 * 64;
    static constexpr std::size_t kFirstBytes = kExchangeBytes + 64;
    static_assert(Exchange::kHeaderBytes + Exchange::kFlagBytes <= 64);
    static_assert(std::is_trivially_destructible_v<Exchange>);
    static constexpr std::size_t kMessageBytes =
        (kBefore + ControlPage::kPayloadBytes + Exchange::kFlagBytes + 63) / 64 * 64;
    static constexpr std::size_t kBytes = kFirstBytes + 2 * kMessageBytes;

    [[nodiscard]] std::byte *pages() const noexcept { return mine - kBefore - kFirstBytes; }
};

} // namespace hetcoll
