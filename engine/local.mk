hetcoll_sources += \
	engine/direct_probe.h engine/direct_probe.cc \
	engine/engine.h engine/engine.cc \
	engine/exchange.h engine/exchange.cc \
	engine/executor.h engine/executor.cc \
	engine/hetcoll.h engine/hetcoll.cc \
	engine/meeting.h engine/meeting.cc \
	engine/node_group.h engine/node_group.cc \
	engine/operation.h engine/operation.cc \
	engine/process.h engine/process.cc \
	engine/subgroup.h engine/subgroup.cc
