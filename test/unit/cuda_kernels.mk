unit_sources_cuda_kernels =
