hetcoll_sources += \
	topology/file.h \
	topology/ids.h \
	topology/link_units.h \
	topology/record.h \
	topology/route.h \
	topology/topology.h
hetcoll_sources += \
	topology/forest_union.h topology/forest_union.cc \
	topology/hybrid_share.h topology/hybrid_share.cc \
	topology/strength.h topology/strength.cc \
	topology/tree_packing.h topology/tree_packing.cc
