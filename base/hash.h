// FNV-1a, byte by byte: the same on every machine, so processes compare hashes and files keep them.
#pragma once

#include <cstdint>
#include <string_view>

namespace hetcoll {

class Hash {
public:
    constexpr void add(std::uint64_t number) noexcept
    {
        for (int shift = 0; shift < 64; shift += 8) {
            add_byte(static_cast<unsigned char>(number >> shift));
        }
    }
    // The length goes in too, so that "a" and "bc" differ from "ab" and "c".
    constexpr void add(std::string_view text) noexcept
    {
        add(std::uint64_t{text.size()});
        for (const char c : text) {
            add_byte(static_cast<unsigned char>(c));
        }
    }
    [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

private:
    constexpr void add_byte(unsigned char byte) noexcept
    {
        value_ = (value_ ^ byte) * 1099511628211u;
    }

    std::uint64_t value_ = 14695981039346656037u;
};

} // namespace hetcoll
