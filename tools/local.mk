# Programs for users, installed, and the topologies of known machines.
if WITH_CUDA
if HAVE_BENCH_HEADERS
bin_PROGRAMS += hetcoll_info
TESTS += tools/hetcoll_info_test.sh tools/hetcoll_info_calls_test.sh
endif
hetcoll_info_SOURCES = \
	tools/hetcoll_info.cc \
	tools/info_call.h tools/info_call.cc \
	tools/info_explain.h tools/info_explain.cc \
	tools/info_model.h tools/info_model.cc \
	tools/info_topology.h tools/info_topology.cc
hetcoll_info_CPPFLAGS = $(AM_CPPFLAGS) -DHETCOLL_TOPOLOGY_FOLDER='"$(topologydir)"'
hetcoll_info_LDADD = libhetcoll.la
endif

topologydir = $(pkgdatadir)/topology
dist_topology_DATA = \
	topology/machines/dgx1p.topology \
	topology/machines/dgx1v.topology \
	topology/machines/dgx1v-014.topology \
	topology/machines/dgx1v-034.topology \
	topology/machines/dgx1v-0124.topology \
	topology/machines/dgx1v-01234.topology \
	topology/machines/dgx2.topology \
	topology/machines/dgxa100.topology \
	topology/machines/dgxh100.topology \
	topology/machines/pcie8.topology
EXTRA_DIST += tools/hetcoll_info_test.sh tools/hetcoll_info_calls_test.sh

# The schema of tuning tables, for editors and validators.
dist_pkgdata_DATA = tuning/hetcoll_tuning.schema.json
