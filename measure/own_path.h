// The path of this program, to start it again, or those next to it.
#pragma once

#include <string>

namespace hetcoll {

// The path of this program; empty where the system does not say it.
[[nodiscard]] std::string own_path();

} // namespace hetcoll
