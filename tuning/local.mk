hetcoll_sources += \
	tuning/build_schedule.h tuning/build_schedule.cc \
	tuning/choice.h tuning/choice.cc \
	tuning/cluster_model.h tuning/cluster_model.cc \
	tuning/model.h tuning/model.cc
