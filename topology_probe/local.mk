hetcoll_sources += \
	topology_probe/probe.h
