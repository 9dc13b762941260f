// How many of something there are, for messages.
#pragma once

#include <concepts>
#include <string>

namespace hetcoll {

// "3 segments", "1 tree".
[[nodiscard]] std::string counted(std::integral auto count, const char *what)
{
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

} // namespace hetcoll
