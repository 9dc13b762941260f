unit_sources_cuda_kernels = \
	test/unit/cuda_kernels_copy_threads_test.cc \
	test/unit/cuda_kernels_fixed_point_test.cc \
	test/unit/cuda_kernels_host_reduce_test.cc \
	test/unit/cuda_kernels_names_test.cc \
	test/unit/cuda_kernels_numbers_test.cc \
	test/unit/cuda_kernels_reduce_threads_test.cc \
	test/unit/cuda_kernels_reference.cc \
	test/unit/cuda_kernels_reference.h \
	test/unit/float_modes.h
