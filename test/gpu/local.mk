# Tests that a real GPU can run too. make check runs them on the emulated GPU, make check-gpu on the
# system's, which must be a real one.
gpu_tests = test/gpu/kernels_gpu_test test/gpu/ranks_in_one_process_test test/gpu/ranks_over_ipc_test
if HAVE_GTEST
if WITH_CUDA
check_PROGRAMS += $(gpu_tests)
TESTS += $(gpu_tests)
endif
endif

test_gpu_kernels_gpu_test_SOURCES = \
	test/gpu/kernels_gpu_test.cc \
	test/unit/cuda_kernels_reference.cc \
	test/unit/cuda_kernels_reference.h
test_gpu_kernels_gpu_test_LDADD = $(unit_libs)

test_gpu_ranks_in_one_process_test_SOURCES = \
	test/gpu/ranks_in_one_process_test.cc \
	test/unit/memory_network.cc test/unit/memory_network.h
test_gpu_ranks_in_one_process_test_LDADD = $(unit_libs)
nodist_EXTRA_test_gpu_ranks_in_one_process_test_SOURCES = linked_by_cxx.cc

# Ranks that are processes, for tests and benchmarks without MPI.
process_ranks = \
	test/gpu/process_network.h test/gpu/process_network.cc \
	test/gpu/process_job.h test/gpu/process_job.cc \
	test/gpu/small_numbers.h
test_gpu_ranks_over_ipc_test_SOURCES = \
	test/gpu/ranks_over_ipc_test.cc $(process_ranks) \
	test/gpu/test_memory.h test/gpu/test_memory.cc \
	measure/buffer.h measure/buffer.cc
test_gpu_ranks_over_ipc_test_LDADD = $(unit_libs)

# The benchmark of the same ranks still works, and so does what it asks of NCCL.
if WITH_CUDA
check_PROGRAMS += $(checked_benchmarks)
check_LTLIBRARIES += test/gpu/libfake_nccl.la
TESTS += test/gpu/gpu_ranks_bench_test.sh
if HAVE_BENCH_HEADERS
check_LTLIBRARIES += test/gpu/libfake_cublas.la
TESTS += test/gpu/kernel_blocks_test.sh
endif
endif
test_gpu_libfake_nccl_la_SOURCES = test/gpu/fake_nccl.cc
test_gpu_libfake_nccl_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/gpu
test_gpu_libfake_cublas_la_SOURCES = test/gpu/fake_cublas.cc
test_gpu_libfake_cublas_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/gpu
EXTRA_DIST += test/gpu/gpu_ranks_bench_test.sh test/gpu/kernel_blocks_test.sh

# What check-tsan runs of them: ranks and programs' threads as threads of one process.
tsan_gpu_tests =
if HAVE_GTEST
if WITH_CUDA
tsan_gpu_tests += test/gpu/ranks_in_one_process_test
endif
endif

# What only a GPU can tell, in parts: make check-gpu PARTS="ipc kernels". Without PARTS all of them.
check_gpu_programs =
if WITH_CUDA
check_PROGRAMS += test/gpu/probe test/gpu/latency_probe test/gpu/which_gpu
TESTS += test/gpu/check_gpu_test.sh
if WITH_OMPI
TESTS += test/gpu/carry_test.sh test/gpu/first_minutes_test.sh
endif
check_gpu_programs += test/gpu/probe test/gpu/latency_probe test/gpu/which_gpu emulated_gpu/conformance bench/cpu_path_bench $(checked_benchmarks)
if HAVE_GTEST
check_gpu_programs += $(gpu_tests)
endif
if WITH_OMPI
check_gpu_programs += test/mpi/churn test/mpi/device_allreduce test/mpi/foreign_kernel test/mpi/lifecycle \
	test/mpi/mixed_memory test/mpi/nonblocking test/mpi/other_memory test/mpi/own_collectives \
	test/mpi/staged_collectives test/mpi/streams test/mpi/named_stream test/mpi/stream_order bench/stream_bench examples/stream/libstream_calls.so
endif
endif
test_gpu_which_gpu_SOURCES = test/gpu/which_gpu.cc $(measure_micro)
nodist_test_gpu_which_gpu_SOURCES = measure/commit.h
test_gpu_which_gpu_LDADD = libhetcoll.la
# Both are linked with the emulated libcuda.so.1, without a path to it: the loader's is taken.
probe_shared = test/gpu/probe.h test/gpu/probe_shared.cc
test_gpu_probe_SOURCES = $(probe_shared) \
	test/gpu/probe.cc \
	test/gpu/probe_costs.cc \
	test/gpu/probe_kernels.cc \
	test/gpu/probe_memory.cc \
	test/gpu/probe_waits.cc
test_gpu_latency_probe_SOURCES = $(probe_shared) \
	test/gpu/latency_probe.cc test/gpu/latency_probe.h \
	test/gpu/latency_probe_copies.cc \
	test/gpu/latency_probe_flag.cc \
	test/gpu/latency_probe_kernels.cc \
	test/gpu/latency_probe_launches.cc \
	test/gpu/latency_probe_processes.cc \
	test/gpu/latency_probe_queries.cc \
	test/gpu/latency_probe_questions.cc \
	test/gpu/latency_probe_threads.cc \
	test/gpu/latency_probe_times.cc \
	test/gpu/latency_probe_words.cc
test_gpu_probe_LDADD = -L$(emulated_gpu_lib) -l:libcuda.so.1 -ldl
test_gpu_probe_DEPENDENCIES = $(emulated_gpu_lib)/libcuda.so.1
test_gpu_latency_probe_LDADD = $(test_gpu_probe_LDADD)
test_gpu_latency_probe_DEPENDENCIES = $(test_gpu_probe_DEPENDENCIES)
PARTS =
check-gpu:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) $(check_gpu_programs)
	@HETCOLL_SRCDIR='$(abs_srcdir)' bash $(srcdir)/test/gpu/check_gpu.sh $(PARTS)
# make carry FOLDER=/tmp/gpu: all that check-gpu needs elsewhere.
FOLDER =
carry:
	$(MAKE) $(AM_MAKEFLAGS) all
	$(MAKE) $(AM_MAKEFLAGS) $(check_gpu_programs)
	bash $(srcdir)/test/gpu/carry.sh $(FOLDER)
EXTRA_DIST += test/gpu/arrays.py test/gpu/arrays.sh test/gpu/cpu_path.sh test/gpu/carry.sh test/gpu/carry_test.sh \
	test/gpu/check_gpu.sh test/gpu/check_gpu_test.sh test/gpu/component.sh test/gpu/first_minutes.sh \
	test/gpu/first_minutes_test.sh \
	test/gpu/mpi_settings.sh test/gpu/parts.sh \
	test/gpu/streams.sh
EXTRA_DIST += test/gpu/horovod_extension.mk test/gpu/horovod_extension.sh test/gpu/horovod_gpu.py
