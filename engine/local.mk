# From the ground up: a room includes those above it in this list only (config/check_layers.sh).
hetcoll_sources += \
	engine/types/call.h engine/types/counters.h engine/types/facts.c engine/types/facts.h engine/types/settings.h \
	engine/meeting/call_mismatch.cc engine/meeting/call_mismatch.h \
	engine/meeting/call_signature.cc engine/meeting/call_signature.h engine/meeting/control_page.h engine/meeting/exchange.cc engine/meeting/exchange.h engine/meeting/flag_set.h engine/meeting/flags.h \
	engine/meeting/handed_on.cc engine/meeting/handed_on.h \
	engine/meeting/meeting.cc engine/meeting/meeting.h engine/meeting/messages.cc engine/meeting/messages.h \
	engine/meeting/node_group.cc \
	engine/meeting/node_group.h engine/meeting/node_ranks.cc engine/meeting/node_ranks.h engine/meeting/own_call.h \
	engine/meeting/page_problem.h engine/meeting/rank_set.h engine/meeting/rooms.cc engine/meeting/rooms.h \
	engine/meeting/roll_call.cc engine/meeting/roll_call.h engine/meeting/subgroup.cc engine/meeting/subgroup.h \
	engine/process/aggregator_list.cc engine/process/aggregator_list.h engine/process/call_record.h engine/process/contexts.cc engine/process/contexts.h \
	engine/process/counters.cc engine/process/counters.h engine/process/cpu_views.cc \
	engine/process/cpu_views.h engine/process/direct_probe.cc engine/process/direct_probe.h \
	engine/process/frame_memory.cc engine/process/frame_memory.h engine/process/gpus.cc engine/process/gpus.h \
	engine/process/known_prices.h engine/process/memory_reserve.cc engine/process/memory_reserve.h \
	engine/process/message_trial.cc engine/process/message_trial.h \
	engine/process/notices.h engine/process/open_pages.h engine/process/parameters.cc engine/process/parameters.h engine/process/patience.h engine/process/pinned_pipe.cc \
	engine/process/pinned_pipe.h engine/process/place.cc engine/process/place.h engine/process/pool.cc engine/process/pool.h engine/process/process.cc engine/process/process.h \
	engine/process/rank_file.cc engine/process/rank_file.h \
	engine/process/settings.cc engine/process/settings.h engine/process/sharing.cc engine/process/sharing.h engine/process/stage.cc \
	engine/process/stage.h \
	engine/process/topology_file.cc engine/process/topology_file.h engine/process/trace.cc \
	engine/process/trace.h engine/process/tuning_inputs.cc engine/process/tuning_inputs.h engine/process/user_ops.cc engine/process/user_ops.h \
	engine/communicator/adapters.cc engine/communicator/adapters.h \
	engine/communicator/aggregation.cc engine/communicator/aggregation.h \
	engine/communicator/aggregator_messages.cc engine/communicator/aggregator_messages.h \
	engine/communicator/agreed_settings.cc engine/communicator/agreed_settings.h \
	engine/communicator/built_schedule.h engine/communicator/carrier.h \
	engine/communicator/chooser.cc engine/communicator/chooser.h engine/communicator/communicator.cc \
	engine/communicator/communicator.h engine/communicator/departure.cc engine/communicator/departure.h \
	engine/communicator/executor.cc engine/communicator/executor.h \
	engine/communicator/first_error.h engine/communicator/freed.cc engine/communicator/freed.h \
	engine/communicator/known_peers.cc engine/communicator/known_peers.h \
	engine/communicator/mapped_buffers.h engine/communicator/mapped_call.cc engine/communicator/mapped_call.h engine/communicator/means.h engine/communicator/membership.h \
	engine/communicator/message_channels.cc engine/communicator/message_channels.h \
	engine/communicator/named_stream.cc engine/communicator/named_stream.h \
	engine/communicator/open_requests.cc engine/communicator/open_requests.h \
	engine/communicator/ordered_inputs.h \
	engine/communicator/page_pins.cc engine/communicator/page_pins.h \
	engine/communicator/peer_search.cc engine/communicator/peer_search.h engine/communicator/peers.cc \
	engine/communicator/peers.h engine/communicator/reach_trial.cc engine/communicator/reach_trial.h \
	engine/communicator/planner.cc engine/communicator/planner.h \
	engine/communicator/pull_channels.cc engine/communicator/pull_channels.h \
	engine/communicator/reserved.h engine/communicator/same_calls.cc engine/communicator/same_calls.h \
	engine/communicator/schedules.cc engine/communicator/schedules.h \
	engine/communicator/step_progress.cc engine/communicator/step_progress.h \
	engine/communicator/story.cc engine/communicator/story.h \
	engine/communicator/warnings.cc engine/communicator/warnings.h \
	engine/communicator/watch.cc engine/communicator/watch.h \
	engine/call/allreduce.cc engine/call/as_floats.cc engine/call/attach.cc engine/call/borrowed.cc engine/call/call.cc engine/call/call.h engine/call/call_copies.cc engine/call/choosing.cc engine/call/collective.cc \
	engine/call/cpu_path.cc engine/call/cpu_path.h \
	engine/call/fixed_point.cc engine/call/idle_sleep.h engine/call/in_network.cc \
	engine/call/late_ranks.cc engine/call/late_ranks.h engine/call/loan.h engine/call/look.cc engine/call/operation.cc engine/call/own_vector.cc \
	engine/call/operation.h engine/call/operation_place.cc engine/call/operation_queue.cc engine/call/operation_queue.h \
	engine/call/prepared.cc engine/call/prepared.h \
	engine/call/publish.cc engine/call/refusal.cc engine/call/refusal.h engine/call/refusals.cc engine/call/refusals.h engine/call/report.cc engine/call/report.h engine/call/run.cc \
	engine/call/reach.cc engine/call/ready.cc engine/call/host.cc engine/call/host_calls.cc engine/call/host_calls.h engine/call/staged.cc engine/call/task.h \
	engine/call/stream_calls.cc engine/call/stream_calls.h engine/call/stream_gate.h engine/call/protocols.h \
	engine/boundary.h engine/communicator_handle.h engine/hetcoll.h engine/hetcoll.cc engine/hetcoll_stage.cc engine/log_file.cc engine/hetcoll_stream.cc \
	engine/process_handle.h
