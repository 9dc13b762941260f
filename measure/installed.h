// Where a program finds what belongs to it, installed or in the build folder.
#pragma once

#include <string>

namespace hetcoll {

// The path of this program; empty where the system does not say it.
[[nodiscard]] std::string own_path();

// The folder of the shipped topologies and clusters: beside the program in its build folder, below
// share of the installation that it is part of, wherever that was moved, or where make install put
// them.
[[nodiscard]] std::string topology_folder();

} // namespace hetcoll
