unit_sources_schedule = \
	test/unit/schedule_algorithms_test.cc \
	test/unit/hierarchy.h \
	test/unit/schedule_all_ranks.h \
	test/unit/schedule_block_span_test.cc \
	test/unit/schedule_broken_step_test.cc \
	test/unit/schedule_builder_test.cc \
	test/unit/schedule_channels_test.cc \
	test/unit/schedule_contract_test.cc \
	test/unit/schedule_halves_test.cc \
	test/unit/schedule_hierarchical_test.cc \
	test/unit/schedule_in_network_test.cc \
	test/unit/schedule_match_test.cc \
	test/unit/schedule_ordered_test.cc \
	test/unit/schedule_print_test.cc \
	test/unit/schedule_radix_test.cc \
	test/unit/schedule_recursive_multiplying_test.cc \
	test/unit/schedule_reference.h \
	test/unit/schedule_verify_test.cc
unit_sources_schedule += \
	test/unit/schedule_rings_test.cc \
	test/unit/schedule_shares_test.cc \
	test/unit/schedule_together_test.cc \
	test/unit/schedule_trees_test.cc \
	test/unit/schedule_weighted_test.cc \
	test/unit/topology_dgx1.h test/unit/topology_dgx1.cc
