# Tests that a real GPU can run too. make check runs them on the emulated GPU, make check-gpu on
# whatever libcuda.so.1 the system has.
gpu_tests = test/gpu/kernels_gpu_test
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

check-gpu: $(gpu_tests)
	@for test in $(gpu_tests); do $(TIMEOUT) -k 10 $(UNIT_TEST_SECONDS) ./$$test --gtest_brief=1 || exit 1; done
.PHONY: check-gpu
