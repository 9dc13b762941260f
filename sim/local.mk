# Schedules on simulated clusters. All but simgrid_run.cc does without SimGrid, and nothing of it is
# part of the component.
if HAVE_SIMGRID
noinst_LTLIBRARIES += libhetcoll_sim.la
libhetcoll_sim_la_LIBADD = $(SIMGRID_LIBS)
endif
hetcoll_tools_sources += sim/cluster_file.h sim/cluster_file.cc
libhetcoll_sim_la_SOURCES = \
	sim/activities.h \
	sim/bound.h sim/bound.cc \
	sim/child.h sim/child.cc \
	sim/in_network.h sim/in_network.cc \
	sim/gpu_host.h \
	sim/kernels.h sim/kernels.cc \
	sim/simgrid_names.h \
	sim/simgrid_run.h sim/simgrid_run.cc \
	sim/simulation.h sim/simulation.cc
