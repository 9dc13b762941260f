// Sends and receives that have no partner yet, of each two actors and a channel.
#pragma once

#include "machine/routes.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hetcoll {

class Connections {
public:
    struct One {
        int token;
        double bytes; // of a send
        Routes::Far far;
    };
    struct Connection {
        std::uint64_t key = kNone;
        std::array<const HostRoute *, 3> ways{}; // by Far; null: not known yet
        int first = -1, last = -1; // of those that wait: sends, or receives, never both
        bool sends = false;
    };

    // Stays where it is until the next call.
    [[nodiscard]] Connection &find(int from, int to, int channel)
    {
        constexpr int kActorBits = 24, kChannelBits = 16;
        const std::uint64_t key = static_cast<std::uint64_t>(from) << (kActorBits + kChannelBits) |
                                  static_cast<std::uint64_t>(to) << kChannelBits |
                                  static_cast<std::uint64_t>(channel);
        Connection *found = &place_of(key);
        if (found->key == key) {
            return *found;
        }
        if (2 * ++count_ > table_.size()) {
            grow();
            found = &place_of(key);
        }
        found->key = key;
        return *found;
    }

    [[nodiscard]] static bool waits(const Connection &on, bool sends)
    {
        return on.first >= 0 && on.sends == sends;
    }
    void add(Connection &on, bool sends, const One &one)
    {
        int number = static_cast<int>(waiting_.size());
        if (unused_ < 0) {
            waiting_.push_back({one, -1});
        } else {
            number = std::exchange(unused_, waiting_[static_cast<std::size_t>(unused_)].next);
            waiting_[static_cast<std::size_t>(number)] = {one, -1};
        }
        if (on.first < 0) {
            on.first = number;
        } else {
            waiting_[static_cast<std::size_t>(on.last)].next = number;
        }
        on.last = number;
        on.sends = sends;
    }
    [[nodiscard]] One take(Connection &on)
    {
        Waiting &taken = waiting_[static_cast<std::size_t>(on.first)];
        const int number = std::exchange(on.first, taken.next);
        taken.next = std::exchange(unused_, number);
        return taken.one;
    }

private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    struct Waiting {
        One one;
        int next;
    };

    // Where it is, or may be put.
    [[nodiscard]] Connection &place_of(std::uint64_t key)
    {
        constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15; // Knuth: spreads keys that are alike
        const std::size_t mask = table_.size() - 1;
        std::size_t place = key * kGolden >> (64 - std::countr_zero(table_.size()));
        while (table_[place].key != key && table_[place].key != kNone) {
            place = (place + 1) & mask;
        }
        return table_[place];
    }
    void grow()
    {
        std::vector<Connection> old(2 * table_.size());
        old.swap(table_);
        for (const Connection &connection : old) {
            if (connection.key != kNone) {
                place_of(connection.key) = connection;
            }
        }
    }

    std::vector<Connection> table_ = std::vector<Connection>(64); // a power of two, half of it free
    std::size_t count_ = 0;
    std::vector<Waiting> waiting_;
    int unused_ = -1; // of waiting_
};

} // namespace hetcoll
