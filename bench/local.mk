# hetcoll_bench, installed. What the MPI tests share with it is a library of its own.
bench_common = \
	bench/buffer.h bench/buffer.cc \
	bench/counters.h bench/counters.cc \
	bench/fusion.h bench/fusion.cc \
	bench/horovod.h bench/horovod.cc \
	bench/measure.h bench/measure.cc \
	bench/mpi_names.h bench/mpi_names.cc \
	bench/parameters.h bench/parameters.cc \
	bench/pattern.h bench/pattern.cc \
	bench/persistent.h \
	bench/replay.h bench/replay.cc \
	bench/sizes.h bench/sizes.cc \
	bench/trace.h bench/trace.cc \
	bench/ways.h bench/ways.cc \
	bench/workload.h bench/workload.cc

if WITH_CUDA
if WITH_OMPI
noinst_LTLIBRARIES += libhetcoll_bench.la
libhetcoll_bench_la_SOURCES = $(bench_common)
libhetcoll_bench_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS) -DOMPI_SKIP_MPICXX=1

if HAVE_BENCH_HEADERS
bin_PROGRAMS += hetcoll_bench
endif
hetcoll_bench_SOURCES = \
	bench/hetcoll_bench.cc \
	bench/host.h bench/host.cc \
	bench/machine.h bench/machine.cc \
	bench/options.h bench/options.cc \
	bench/report.h bench/report.cc \
	bench/resnet50.h
nodist_hetcoll_bench_SOURCES = bench/commit.h
hetcoll_bench_CPPFLAGS = $(libhetcoll_bench_la_CPPFLAGS)
hetcoll_bench_LDADD = libhetcoll_bench.la libhetcoll.la $(MPI_LIBS)
endif
endif

# Horovod's calls, recorded and played again. The operations for half are found beside the program.
if WITH_CUDA
if WITH_OMPI
check_PROGRAMS += bench/horovod_replay
check_LTLIBRARIES += bench/horovod_half.la
check_LTLIBRARIES += bench/mpi_trace.la
check_DATA += bench/horovod_half.so bench/mpi_trace.so
TESTS += test/mpi/traces_test.sh
endif
endif
bench_horovod_replay_SOURCES = \
	bench/horovod_replay.cc \
	bench/host.h bench/host.cc \
	bench/machine.h bench/machine.cc
nodist_bench_horovod_replay_SOURCES = bench/commit.h
bench_horovod_replay_CPPFLAGS = $(libhetcoll_bench_la_CPPFLAGS)
bench_horovod_replay_LDADD = libhetcoll_bench.la libhetcoll.la $(MPI_LIBS)
bench_horovod_half_la_SOURCES = bench/horovod_half.cc
bench_horovod_half_la_CPPFLAGS = $(libhetcoll_bench_la_CPPFLAGS)
bench_horovod_half_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/bench
bench_mpi_trace_la_SOURCES = bench/mpi_trace.c
bench_mpi_trace_la_CPPFLAGS = $(libhetcoll_bench_la_CPPFLAGS)
bench_mpi_trace_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/bench
bench_mpi_trace_la_LIBADD = $(MPI_LIBS) -ldl
bench/horovod_half.so: bench/horovod_half.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/horovod_half.so $@
bench/mpi_trace.so: bench/mpi_trace.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/mpi_trace.so $@
CLEANFILES += bench/horovod_half.so bench/mpi_trace.so
EXTRA_DIST += bench/horovod_replay.sh bench/horovod_step.sh bench/traces test/mpi/traces_test.sh

# The commit that a result was taken with. Written anew only when it changes.
BUILT_SOURCES += bench/commit.h
CLEANFILES += bench/commit.h
bench/commit.h: bench-commit-always
	@$(MKDIR_P) bench
	@commit=`cd $(srcdir) && git describe --always --dirty --abbrev=12 2>/dev/null` && test -n "$$commit" || \
		commit="release $(PACKAGE_VERSION)"; \
	echo "#define HETCOLL_COMMIT \"$$commit\"" >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi

EXTRA_DIST += bench/regenerate_table.sh bench/plot.py bench/draw_pictures.py bench/job.sh bench/demo.sh bench/host_overhead.sh bench/aggregator_bench.sh bench/wsp_bench.sh bench/link_model.sh bench/unequal_links.sh bench/scaling.sh bench/closed_forms.sh bench/results
