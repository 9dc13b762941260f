hetcoll_sources += \
	tuning/build_schedule.h tuning/build_schedule.cc \
	tuning/choice.h tuning/choice.cc
