# `make examples`; make check builds them too. Not part of what is installed. They link the driver as
# any CUDA program does.
EXTRA_DIST += examples/README.md examples/device_allreduce.c examples/horovod
CLEANFILES += examples/device_allreduce
if WITH_CUDA
check_DATA += examples/device_allreduce
endif
examples: examples/device_allreduce
examples/device_allreduce: examples/device_allreduce.c $(emulated_gpu_lib)/libcuda.so.1
	@$(MKDIR_P) examples
	$(MPICC) $(CUDA_CPPFLAGS) $(HETCOLL_SANITIZER_FLAGS) -o $@ $(srcdir)/examples/device_allreduce.c \
		$(emulated_gpu_lib)/libcuda.so.1
