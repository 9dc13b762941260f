# Schedules on simulated clusters. All but simgrid_run.cc does without SimGrid, and nothing of it is
# part of the component.
if HAVE_SIMGRID
noinst_LTLIBRARIES += libhetcoll_sim.la
libhetcoll_sim_la_LIBADD = $(SIMGRID_LIBS)
endif
libhetcoll_sim_la_SOURCES = \
	sim/activities.h \
	sim/bound.h sim/bound.cc \
	sim/child.h sim/child.cc \
	sim/cluster.h sim/cluster.cc \
	sim/feed.h sim/feed.cc \
	sim/in_network.h sim/in_network.cc \
	sim/kernels.h sim/kernels.cc \
	sim/machine.h sim/machine.cc \
	sim/meeting_time.h sim/meeting_time.cc \
	sim/platform.h \
	sim/rank.h sim/rank.cc \
	sim/ranks.h sim/ranks.cc \
	sim/simgrid_run.h sim/simgrid_run.cc \
	sim/simulation.h sim/simulation.cc
