#include "machine/fingerprint.h"

#include "base/hash.h"

namespace hetcoll {

std::string Fingerprint::first_difference(const Fingerprint &asked) const
{
    for (const auto &[name, value] : asked.facts) {
        const auto mine = facts.find(name);
        if (mine == facts.end()) {
            return name + " is unknown here, not '" + value + "'";
        }
        if (mine->second != value && mine->second != kAny) {
            return name + " is '" + mine->second + "' here, not '" + value + "'";
        }
    }
    return {};
}

std::uint64_t Fingerprint::hash() const noexcept
{
    Hash hash;
    for (const auto &[name, value] : facts) {
        hash.add(name);
        hash.add(value);
    }
    return hash.value();
}

} // namespace hetcoll
