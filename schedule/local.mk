hetcoll_sources += \
	schedule/algorithm_rows.h schedule/algorithm_rows.cc \
	schedule/algorithms.h \
	schedule/builder.h schedule/builder.cc \
	schedule/direct.h schedule/direct.cc \
	schedule/fold.h \
	schedule/halves.h \
	schedule/groups.h schedule/groups.cc \
	schedule/in_network.h schedule/in_network.cc \
	schedule/match.h schedule/match.cc \
	schedule/ordered.cc \
	schedule/program.h \
	schedule/radix.h schedule/radix.cc \
	schedule/recursive_doubling.cc \
	schedule/recursive_multiplying.h schedule/recursive_multiplying.cc \
	schedule/ring.cc \
	schedule/rings.h schedule/rings.cc \
	schedule/rounds.h schedule/rounds.cc \
	schedule/schedule.h \
	schedule/turns.h
hetcoll_sources += \
	schedule/chain.cc \
	schedule/trees.cc \
	schedule/shares.h schedule/shares.cc \
	schedule/tree_steps.h \
	schedule/weighted.h schedule/weighted.cc

hetcoll_tools_sources += \
	schedule/binomial.cc \
	schedule/contract.h \
	schedule/cost.h \
	schedule/expressions.h \
	schedule/print.h schedule/print.cc \
	schedule/replay.h schedule/replay.cc \
	schedule/replay_results.h schedule/replay_results.cc \
	schedule/verify.h schedule/verify.cc
