# What programs that measure share: hetcoll_tune, hetcoll_bench, the benchmarks and the MPI tests.
if WITH_CUDA
if WITH_OMPI
noinst_LTLIBRARIES += libhetcoll_measure.la libhetcoll_machine.la
endif
endif
libhetcoll_measure_la_SOURCES = \
	measure/buffer.h measure/buffer.cc \
	measure/counters.h measure/counters.cc \
	measure/cpu_path.h measure/cpu_path.cc \
	measure/measure.h measure/measure.cc \
	measure/mpi_names.h measure/mpi_names.cc \
	measure/own_kernels.h measure/own_kernels.cc \
	measure/parameters.h measure/parameters.cc \
	measure/pattern.h measure/pattern.cc \
	measure/persistent.h measure/small_floats.h \
	measure/contenders.h measure/contenders.cc \
	measure/workload.h measure/workload.cc
libhetcoll_measure_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS) -DOMPI_SKIP_MPICXX=1

# What all programs' command lines share. No GPU, no MPI.
if HAVE_BENCH_HEADERS
noinst_LTLIBRARIES += libhetcoll_command_line.la
endif
libhetcoll_command_line_la_SOURCES = \
	measure/command_line.h measure/command_line.cc \
	measure/json_document.h measure/json_document.cc \
	measure/named_files.h measure/named_files.cc \
	measure/output_file.h measure/output_file.cc \
	measure/own_path.h measure/own_path.cc \
	measure/progress.h measure/progress.cc \
	measure/size_options.h measure/size_options.cc \
	measure/sizes.h measure/sizes.cc \
	measure/version.h measure/version.cc
nodist_libhetcoll_command_line_la_SOURCES = measure/commit.h
libhetcoll_command_line_la_CPPFLAGS = $(AM_CPPFLAGS) # objects of their own: a benchmark has measure/sizes too

# Apart, because it is compiled anew for each commit: the header of a result. In jobs, and without MPI.
libhetcoll_machine_la_SOURCES = measure/host.h measure/host.cc measure/machine.h measure/machine.cc
nodist_libhetcoll_machine_la_SOURCES = measure/commit.h
libhetcoll_machine_la_CPPFLAGS = $(libhetcoll_measure_la_CPPFLAGS)
measure_micro = measure/micro.h measure/micro.cc measure/buffer.h measure/buffer.cc measure/host.h measure/host.cc

# The commit that a result was taken with. Written anew only when it changes. A release that was unpacked in the
# repository of something else has none.
BUILT_SOURCES += measure/commit.h
CLEANFILES += measure/commit.h
measure/commit.h: commit-always
	@$(MKDIR_P) measure
	@commit=`cd $(srcdir) && git ls-files --error-unmatch configure.ac >/dev/null 2>&1 && \
		git describe --always --dirty --abbrev=12 2>/dev/null` && test -n "$$commit" || \
		commit="release $(PACKAGE_VERSION)"; \
	echo "#define HETCOLL_COMMIT \"$$commit\"" >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi
