unit_sources_engine = \
	test/unit/engine_aggregation_test.cc \
	test/unit/engine_aggregator_messages_test.cc \
	test/unit/engine_exchange_test.cc \
	test/unit/engine_executor_test.cc \
	test/unit/engine_halves_test.cc \
	test/unit/engine_job.h \
	test/unit/engine_meeting_test.cc \
	test/unit/engine_node_group_test.cc \
	test/unit/engine_nodes.h \
	test/unit/engine_stage_test.cc \
	test/unit/engine_subgroup_test.cc \
	test/unit/engine_switch_points_test.cc \
	test/unit/engine_trace_test.cc \
	test/unit/engine_user_ops_test.cc \
	test/unit/memory_network.h test/unit/memory_network.cc \
	test/unit/schedule_all_ranks.h
