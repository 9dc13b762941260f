hetcoll_sources += \
	topology_probe/hwloc_tree.h topology_probe/hwloc_tree.cc \
	topology_probe/hwloc_xml.h topology_probe/hwloc_xml.cc \
	topology_probe/machine_tree.h topology_probe/machine_tree.cc \
	topology_probe/nvlinks.h topology_probe/nvlinks.cc \
	topology_probe/nvml.h topology_probe/nvml.cc \
	topology_probe/nvml_tree.h topology_probe/nvml_tree.cc \
	topology_probe/peers.h topology_probe/peers.cc \
	topology_probe/probe.h topology_probe/probe_state.h topology_probe/probe.cc \
	topology_probe/rates.cc \
	topology_probe/sys_files.h topology_probe/sys_files.cc

hetcoll_tools_sources += \
	topology_probe/measure.h topology_probe/measure.cc topology_probe/measured_rates.cc \
	topology_probe/probe_machine.cc
