hetcoll_sources += \
	topology/adapters.h topology/adapters.cc \
	topology/exits.h topology/exits.cc \
	topology/file.h topology/file.cc topology/file_name.cc \
	topology/ids.h topology/ids.cc \
	topology/link_units.h topology/link_units.cc \
	topology/merge_graph.h topology/merge_graph.cc \
	topology/out_flow.h topology/out_flow.cc \
	topology/record.h topology/merge.cc topology/summary.cc \
	topology/route.h topology/route.cc \
	topology/topology.h topology/topology.cc
hetcoll_sources += \
	topology/forest_union.h topology/forest_union.cc \
	topology/hybrid_share.h topology/hybrid_share.cc \
	topology/ring_order.h topology/ring_order.cc \
	topology/ring_packing.h topology/ring_packing.cc \
	topology/strength.h topology/strength.cc \
	topology/tree_packing.h topology/tree_packing.cc

hetcoll_tools_sources += \
	topology/layout.h topology/layout.cc \
	topology/print.h topology/print_dot.cc topology/print_matrix.cc topology/print_svg.cc
