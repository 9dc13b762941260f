hetcoll_sources += \
	plan/build_schedule.h plan/build_schedule.cc \
	plan/choice.h \
	plan/choice_ways.h \
	plan/parts.h plan/parts.cc
