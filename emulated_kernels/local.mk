# hetcoll's kernels for the emulated GPU: cuda_kernels/ compiled for the host.
emulated_kernels_sources += \
	emulated_kernels/collapsed.h \
	emulated_kernels/emulated_kernels.cc \
	cuda_kernels/copy.cuh \
	cuda_kernels/floats.cuh \
	cuda_kernels/fixed_point.cu \
	cuda_kernels/fixed_point.cuh \
	cuda_kernels/thread.cuh \
	cuda_kernels/reduce.cu \
	cuda_kernels/reduce.cuh \
	cuda_kernels/signal.cuh \
	cuda_kernels/wait.cuh
