#include "schedule/algorithm_rows.h"

#include <bit>

namespace hetcoll {

std::optional<Algorithm> find_algorithm(std::string_view name) noexcept
{
    for (int i = 0; i < kAlgorithmCount; ++i) {
        if (name == kAlgorithmRows[static_cast<std::size_t>(i)].name) {
            return static_cast<Algorithm>(i);
        }
    }
    return std::nullopt;
}

std::string names_of(AlgorithmSet set, const char *before_last)
{
    std::string names;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (contains(set, algorithm)) {
            const bool last = (set >> i) == 1;
            names += names.empty() ? "" : last ? before_last : ", ";
            names += algorithm_name(algorithm);
        }
    }
    return names;
}

} // namespace hetcoll
