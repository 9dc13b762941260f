hetcoll_sources += \
	plan/build_schedule.h plan/build_schedule.cc \
	plan/candidates.h plan/candidates.cc \
	plan/facts.h \
	plan/hierarchical.h plan/hierarchical.cc \
	plan/mirror.h plan/mirror.cc \
	plan/parts.h plan/parts.cc \
	plan/way.h

hetcoll_tools_sources += \
	plan/describe.h plan/describe.cc
