// What tells one class of machines from another, as far as it decides about speed: "gpu", "links",
// "driver" and the like, each with a value. Who makes one decides which facts there are; a table
// names those that matter to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hetcoll {

struct Fingerprint {
    static constexpr const char *kAny = "*"; // of a machine: it fits whatever is asked for

    std::map<std::string, std::string> facts;

    // The first fact asked for that is missing here or different; empty: this machine is meant.
    [[nodiscard]] std::string first_difference(const Fingerprint &asked) const;
    // The same on every machine for the same facts.
    [[nodiscard]] std::uint64_t hash() const noexcept;
};

// FNV-1a, byte by byte: hashes that ranks compare and files keep.
class Hash {
public:
    void add(std::uint64_t number) noexcept
    {
        for (int i = 0; i < 8; ++i) {
            add_byte(static_cast<unsigned char>(number >> (8 * i)));
        }
    }
    void add(const std::string &text) noexcept
    {
        add(text.size());
        for (const char c : text) {
            add_byte(static_cast<unsigned char>(c));
        }
    }
    [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

private:
    void add_byte(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 0x100000001b3u; }
    std::uint64_t value_ = 0xcbf29ce484222325u;
};

} // namespace hetcoll
