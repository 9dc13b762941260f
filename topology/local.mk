hetcoll_sources += \
	topology/link_units.h
