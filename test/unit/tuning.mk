unit_sources_tuning = \
	test/unit/tuning_algorithms_test.cc \
	test/unit/tuning_build_table_test.cc \
	test/unit/tuning_check_table_test.cc \
	test/unit/tuning_choice_test.cc \
	test/unit/tuning_chunk_tuner_test.cc \
	test/unit/tuning_cluster_model_test.cc \
	test/unit/tuning_cpu_limits_test.cc \
	test/unit/tuning_curves_test.cc \
	test/unit/tuning_measurements_test.cc \
	test/unit/tuning_parts_test.cc \
	test/unit/tuning_table_file_test.cc \
	test/unit/tuning_table_test.cc \
	test/unit/tuning_topology_links_test.cc
unit_sources_tuning += \
	test/unit/topology_dgx1.h test/unit/topology_dgx1.cc \
	test/unit/price_call_prices_test.cc \
	test/unit/price_machines_test.cc \
	test/unit/tuning_arrivals_test.cc \
	test/unit/tuning_node_slices_test.cc \
	test/unit/tuning_price_table_test.cc \
	test/unit/tuning_rank_rings_test.cc \
	test/unit/tuning_rank_shares_test.cc \
	test/unit/tuning_rank_trees_test.cc
