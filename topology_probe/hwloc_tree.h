// hwloc to MachineTree.
#pragma once

#include "topology_probe/machine_tree.h"

#include <string>

namespace hetcoll {

// This machine (or the one that HWLOC_XMLFILE names). `sys` is where /sys is. It tells what hwloc
// does not: what a link and a network card can carry at best.
[[nodiscard]] Result<MachineTree> read_this_machine(const std::string &sys);

// A machine that hwloc (2.0 or later) exported to an XML file.
[[nodiscard]] Result<MachineTree> read_hwloc_xml(const std::string &path);

} // namespace hetcoll
