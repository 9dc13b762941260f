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
test_gpu_ranks_in_one_process_test_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/test/unit
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
	bench/buffer.h bench/buffer.cc
test_gpu_ranks_over_ipc_test_LDADD = $(unit_libs)

# The benchmark of the same ranks still works, and so does what it asks of NCCL.
if WITH_CUDA
check_PROGRAMS += bench/gpu_ranks_bench
check_LTLIBRARIES += test/gpu/libfake_nccl.la
TESTS += test/gpu/gpu_ranks_bench_test.sh
endif
test_gpu_libfake_nccl_la_SOURCES = test/gpu/fake_nccl.cc
test_gpu_libfake_nccl_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath $(abs_builddir)/test/gpu
EXTRA_DIST += test/gpu/gpu_ranks_bench_test.sh

# What check-tsan runs of them: ranks and programs' threads as threads of one process.
tsan_gpu_tests =
if HAVE_GTEST
if WITH_CUDA
tsan_gpu_tests += test/gpu/ranks_in_one_process_test
endif
endif

check_gpu_programs =
if WITH_CUDA
check_gpu_programs += emulated_gpu/conformance
if HAVE_GTEST
check_gpu_programs += $(gpu_tests)
endif
check_gpu_programs += bench/kernel_bench bench/gpu_ranks_bench
endif
check-gpu: $(check_gpu_programs)
	@HETCOLL_SRCDIR='$(abs_srcdir)' TIMEOUT='$(TIMEOUT)' \
		$(SHELL) $(srcdir)/test/gpu/check_gpu.sh $(check_gpu_programs)
EXTRA_DIST += test/gpu/check_gpu.sh
CLEANFILES += check_gpu.results check_gpu.status conformance.answers conformance.diff conformance.gpu conformance.out
