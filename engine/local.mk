hetcoll_sources += \
	engine/aggregation.h engine/aggregation.cc \
	engine/aggregator_messages.h engine/aggregator_messages.cc \
	engine/call_record.h \
	engine/direct_probe.h engine/direct_probe.cc \
	engine/engine.h engine/engine.cc engine/engine_schedules.cc \
	engine/exchange.h engine/exchange.cc \
	engine/executor.h engine/executor.cc \
	engine/flags.h \
	engine/hetcoll.h engine/hetcoll.cc engine/hetcoll_stage.cc \
	engine/idle_sleep.h \
	engine/mapped_call.h engine/mapped_call.cc \
	engine/meeting.h engine/meeting.cc \
	engine/node_group.h engine/node_group.cc \
	engine/operation.h engine/operation.cc engine/operation_run.cc engine/operation_staged.cc \
	engine/operation_late.cc \
	engine/operation_record.cc \
	engine/operation_classify.cc engine/operation_collective.cc \
	engine/operation_fixed.cc engine/operation_in_network.cc engine/operation_parts.cc \
	engine/operation_queue.h engine/operation_queue.cc \
	engine/peers.h engine/peers.cc \
	engine/pinned_pipe.h engine/pinned_pipe.cc \
	engine/process.h engine/process.cc engine/process_store.cc \
	engine/settings.h engine/settings.cc \
	engine/stage.h engine/stage.cc \
	engine/subgroup.h engine/subgroup.cc \
	engine/trace.h engine/trace.cc \
	engine/user_ops.h engine/user_ops.cc
