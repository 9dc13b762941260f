unit_sources_sim = \
	test/unit/plan_way_test.cc \
	test/unit/price_node_ranks_test.cc \
	test/unit/sim_cluster_test.cc \
	test/unit/sim_closed_forms_test.cc \
	test/unit/sim_in_network_test.cc \
	test/unit/sim_platform_test.cc \
	test/unit/sim_price_test.cc \
	test/unit/sim_rank_test.cc \
	test/unit/hierarchy.h \
	test/unit/topology_machines.h
