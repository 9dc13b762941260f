# hetcoll_sources += cuda_kernels/a.h cuda_kernels/a.cc
