hetcoll_sources += \
	schedule/algorithms.h \
	schedule/builder.h schedule/builder.cc \
	schedule/cost.h \
	schedule/fold.h \
	schedule/hierarchical.h schedule/hierarchical.cc \
	schedule/match.h schedule/match.cc \
	schedule/print.h schedule/print.cc \
	schedule/rabenseifner.cc \
	schedule/recursive_doubling.cc \
	schedule/replay.h schedule/replay.cc \
	schedule/ring.cc \
	schedule/rounds.h schedule/rounds.cc \
	schedule/schedule.h \
	schedule/verify.h schedule/verify.cc
hetcoll_sources += schedule/trees.cc
