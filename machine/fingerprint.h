// The facts that tell one class of machines from another as far as speed goes: "gpu", "links",
// "driver" and the like, each with a value. The code that makes one decides which facts there are;
// a table names those that matter to it.
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

} // namespace hetcoll
