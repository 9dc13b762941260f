hetcoll_sources += \
	plan/algorithm.h plan/algorithm.cc \
	plan/build_schedule.h \
	plan/candidates.h plan/candidates.cc \
	plan/facts.h \
	plan/hierarchical.cc \
	plan/host.cc \
	plan/in_network.cc \
	plan/ordered.cc \
	plan/parts.h \
	plan/radix.cc \
	plan/ring.cc \
	plan/team.cc \
	plan/tree.h plan/tree.cc \
	plan/way.h \
	plan/weighted.cc

hetcoll_tools_sources += \
	plan/describe.h plan/describe.cc
