unit_sources_topology = \
	test/unit/topology_file_test.cc \
	test/unit/topology_graph_test.cc \
	test/unit/topology_link_units_test.cc \
	test/unit/topology_machines.h \
	test/unit/topology_print_test.cc \
	test/unit/topology_record_test.cc \
	test/unit/topology_records.h \
	test/unit/topology_route_test.cc
unit_sources_topology += \
	test/unit/topology_dgx1.h test/unit/topology_dgx1.cc \
	test/unit/topology_hybrid_share_test.cc \
	test/unit/topology_exits_test.cc \
	test/unit/topology_out_flow_test.cc \
	test/unit/topology_ring_order_test.cc \
	test/unit/topology_ring_packing_test.cc \
	test/unit/topology_strength_test.cc \
	test/unit/topology_tree_packing_test.cc
