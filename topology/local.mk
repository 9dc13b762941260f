hetcoll_sources += \
	topology/file.h \
	topology/ids.h \
	topology/link_units.h \
	topology/record.h \
	topology/route.h \
	topology/topology.h
