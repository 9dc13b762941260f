# hetcoll_bench, installed.
if WITH_CUDA
if WITH_OMPI
if HAVE_BENCH_HEADERS
bin_PROGRAMS += hetcoll_bench
man_pages += share/hetcoll_bench.1
endif
hetcoll_bench_SOURCES = \
	bench/hetcoll_bench.cc \
	bench/collective.h bench/collective.cc \
	bench/compare.h bench/compare.cc \
	bench/fusion.h bench/fusion.cc \
	bench/options.h bench/options.cc \
	bench/report.h bench/report.cc \
	bench/resnet50.h
hetcoll_bench_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
hetcoll_bench_LDADD = libhetcoll_machine.la libhetcoll_measure.la libhetcoll_command_line.la libhetcoll.la $(MPI_LIBS)
# What demo.sh needs, and no more.
demo-programs: measure/commit.h
	$(MAKE) $(AM_MAKEFLAGS) hetcoll_bench component/mca_coll_hetcoll.so $(emulated_gpu_files)
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
hetcoll_tools_sources += bench/trace.h bench/trace.cc
bench_horovod_replay_SOURCES = \
	bench/horovod_replay.cc \
	bench/horovod.h bench/horovod.cc \
	bench/replay.h bench/replay.cc
bench_horovod_replay_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
bench_horovod_replay_LDADD = libhetcoll_machine.la libhetcoll_measure.la libhetcoll_tools.la libhetcoll.la $(MPI_LIBS)
bench_horovod_half_la_SOURCES = bench/horovod_half.cc
bench_horovod_half_la_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
bench_horovod_half_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/bench
bench_mpi_trace_la_SOURCES = bench/mpi_trace.c
bench_mpi_trace_la_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
bench_mpi_trace_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/bench
bench_mpi_trace_la_LIBADD = $(MPI_LIBS) -ldl
bench/horovod_half.so: bench/horovod_half.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/horovod_half.so $@
bench/mpi_trace.so: bench/mpi_trace.la
	$(AM_V_at)rm -f $@ && $(LN_S) .libs/mpi_trace.so $@
CLEANFILES += bench/horovod_half.so bench/mpi_trace.so
EXTRA_DIST += bench/horovod_replay.sh bench/horovod_step.sh bench/traces test/mpi/traces_test.sh

EXTRA_DIST += bench/draw_pictures.py bench/draw_regions.py bench/job.sh bench/demo.sh bench/host_overhead.sh bench/build_times.sh bench/compare_builds.sh bench/instructions.sh bench/driver_calls.sh bench/small_vectors.sh bench/stream_order.sh bench/aggregator_bench.sh bench/aggregator_tls_bench.sh bench/wsp_bench.sh bench/link_model.sh bench/unequal_links.sh bench/scaling.sh bench/compare_sims.py bench/closed_forms.sh bench/choice_sweep.sh bench/table_check.sh bench/emulated_choice.sh bench/papers.sh bench/papers bench/results

# Tables against fresh measurements; choices without one against all algorithms.
TESTS += bench/table_check_test.sh bench/emulated_choice_test.sh
EXTRA_DIST += bench/table_check_test.sh bench/emulated_choice_test.sh

# The error of sums, of every algorithm.
if WITH_CUDA
check_PROGRAMS += bench/accumulate_error
TESTS += bench/accumulate_error_test.sh
endif
bench_accumulate_error_SOURCES = \
	bench/accumulate_error.cc test/unit/engine_job.h test/unit/memory_network.h test/unit/memory_network.cc \
	$(measure_micro)
nodist_bench_accumulate_error_SOURCES = measure/commit.h
bench_accumulate_error_LDADD = libhetcoll.la
EXTRA_DIST += bench/accumulate_error_test.sh

# The papers' figures beside ours.
TESTS += bench/papers_test.sh
EXTRA_DIST += bench/papers_test.sh
