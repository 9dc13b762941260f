emulated_kernels_sources += \
	cuda_kernels/emulated_kernels.cc \
	cuda_kernels/reduce.cu \
	cuda_kernels/reduce.cuh
