emulated_kernels_sources += \
	cuda_kernels/collapsed.h \
	cuda_kernels/copy.cuh \
	cuda_kernels/emulated_kernels.cc \
	cuda_kernels/fixed_point.cu \
	cuda_kernels/fixed_point.cuh \
	cuda_kernels/lane.cuh \
	cuda_kernels/reduce.cu \
	cuda_kernels/reduce.cuh \
	cuda_kernels/signal.cuh
