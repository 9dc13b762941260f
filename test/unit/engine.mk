unit_sources_engine = \
	test/unit/engine_accumulate_test.cc \
	test/unit/engine_aggregation_test.cc \
	test/unit/engine_aggregator_messages_test.cc \
	test/unit/engine_call_broken_test.cc \
	test/unit/engine_call_closing_test.cc \
	test/unit/engine_call_collective_test.cc \
	test/unit/engine_call_cpu_test.cc \
	test/unit/engine_call_failures_test.cc \
	test/unit/engine_call_fixed_point_test.cc \
	test/unit/engine_call_in_network_test.cc \
	test/unit/engine_call_mapped_test.cc \
	test/unit/engine_call_mixed_test.cc \
	test/unit/engine_call_number_test.cc \
	test/unit/engine_call_persistent_test.cc \
	test/unit/engine_call_queued_test.cc \
	test/unit/engine_call_small_test.cc \
	test/unit/engine_call_signature_test.cc \
	test/unit/engine_call_staged_test.cc \
	test/unit/engine_call_test.cc \
	test/unit/engine_counters_test.cc \
	test/unit/engine_communicator_test.cc \
	test/unit/engine_communicators.h \
	test/unit/engine_exchange_test.cc \
	test/unit/engine_executor_sim_test.cc \
	test/unit/engine_executor_test.cc \
	test/unit/engine_flag_names.h test/unit/engine_flags_test.cc \
	test/unit/engine_frame_memory_test.cc \
	test/unit/engine_float8_test.cc \
	test/unit/engine_halves_test.cc \
	test/unit/engine_job.h \
	test/unit/engine_sums.h \
	test/unit/engine_known_peers_test.cc \
	test/unit/engine_late_ranks_test.cc \
	test/unit/engine_many_ranks_test.cc \
	test/unit/engine_mapped_call_test.cc \
	test/unit/engine_meeting_test.cc \
	test/unit/engine_operation_queue_test.cc \
	test/unit/engine_no_memory_test.cc \
	test/unit/engine_node_group_test.cc \
	test/unit/engine_open_requests_test.cc \
	test/unit/engine_nodes.h \
	test/unit/engine_peers_test.cc \
	test/unit/engine_process.h \
	test/unit/engine_process_test.cc \
	test/unit/engine_ranks.h \
	test/unit/engine_scripted_aggregator.h test/unit/engine_scripted_aggregator.cc \
	test/unit/engine_scripted_peer.h test/unit/engine_scripted_peer.cc \
	test/unit/engine_parameters_test.cc \
	test/unit/engine_settings_test.cc \
	test/unit/engine_stage_test.cc \
	test/unit/engine_streams.h \
	test/unit/engine_pool_test.cc \
	test/unit/engine_subgroup_test.cc \
	test/unit/engine_switch_points_test.cc \
	test/unit/engine_story_test.cc \
	test/unit/engine_task_test.cc \
	test/unit/engine_trace_test.cc \
	test/unit/engine_user_ops_test.cc \
	test/unit/engine_watch_test.cc \
	test/unit/calling_object.h test/unit/failing_allocations.h test/unit/failing_allocations.cc \
	test/unit/memory_network.h test/unit/memory_network.cc \
	test/unit/hierarchy.h test/unit/schedule_all_ranks.h
