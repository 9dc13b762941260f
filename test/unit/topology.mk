unit_sources_topology =
unit_sources_topology += \
	test/unit/topology_dgx1.h test/unit/topology_dgx1.cc \
	test/unit/topology_hybrid_share_test.cc \
	test/unit/topology_strength_test.cc \
	test/unit/topology_tree_packing_test.cc
