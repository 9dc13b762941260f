# Tests that a real GPU can run too. make check runs them on the emulated GPU, make check-gpu on
# whatever libcuda.so.1 the system has.
gpu_tests = test/gpu/kernels_gpu_test test/gpu/ranks_in_one_process_test
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

check-gpu: $(gpu_tests)
	@for test in $(gpu_tests); do $(TIMEOUT) -k 10 $(UNIT_TEST_SECONDS) ./$$test --gtest_brief=1 || exit 1; done
.PHONY: check-gpu
