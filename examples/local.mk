# `make examples`; make check builds them too. Not part of what is installed. They link the driver as
# any CUDA program does.
EXTRA_DIST += examples/README.md examples/device_allreduce.c examples/horovod
EXTRA_DIST += examples/stream/README.md examples/stream/overlap.c examples/stream/overlap_test.sh \
	examples/stream/stream_calls.c examples/stream/sum_cupy.py examples/stream/torch_streams.cpp examples/stream/train_torch.py
EXTRA_DIST += examples/wsp/README.md examples/wsp/environment.sh examples/wsp/hetcoll_wsp.py \
	examples/wsp/logistic.c examples/wsp/logistic_test.sh examples/wsp/train.py examples/wsp/train_test.sh
if WITH_OMPI
CLEANFILES += examples/device_allreduce
if WITH_CUDA
check_DATA += examples/device_allreduce
endif
examples: examples/device_allreduce examples/stream/overlap examples/wsp/logistic
examples/device_allreduce: examples/device_allreduce.c $(emulated_gpu_lib)/libcuda.so.1
	@$(MKDIR_P) examples
	$(MPICC) $(CUDA_CPPFLAGS) $(HETCOLL_SANITIZER_FLAGS) -o $@ $(srcdir)/examples/device_allreduce.c \
		$(emulated_gpu_lib)/libcuda.so.1

# Calls in the order of a stream.
CLEANFILES += examples/stream/overlap examples/stream/libstream_calls.so
if WITH_CUDA
check_DATA += examples/stream/overlap examples/stream/libstream_calls.so
TESTS += examples/stream/overlap_test.sh
endif
examples/stream/overlap: examples/stream/overlap.c include/hetcoll_stream.h $(emulated_gpu_lib)/libcuda.so.1
	@$(MKDIR_P) examples/stream
	$(MPICC) -I$(srcdir)/include -Iinclude $(CUDA_CPPFLAGS) $(HETCOLL_WARNINGS) $(HETCOLL_SANITIZER_FLAGS) -o $@ \
		$(srcdir)/examples/stream/overlap.c $(emulated_gpu_lib)/libcuda.so.1 -ldl
examples/stream/libstream_calls.so: examples/stream/stream_calls.c include/hetcoll_stream.h
	@$(MKDIR_P) examples/stream
	$(MPICC) -shared -fPIC -I$(srcdir)/include -Iinclude $(HETCOLL_WARNINGS) -o $@ $(srcdir)/examples/stream/stream_calls.c -ldl

# Wave-synchronous training, as a user builds it: against the library and its header.
CLEANFILES += examples/wsp/logistic examples/wsp/logistic_on_gpu
check_DATA += examples/wsp/logistic
if WITH_CUDA
check_DATA += examples/wsp/logistic_on_gpu
endif
TESTS += examples/wsp/logistic_test.sh examples/wsp/train_test.sh
link_wsp_example = -I$(srcdir)/include -Iinclude $(HETCOLL_WARNINGS) $(HETCOLL_SANITIZER_FLAGS) \
	$(srcdir)/examples/wsp/logistic.c -L.libs -lhetcoll_wsp -Wl,-rpath,$(abs_builddir)/.libs -lm
examples/wsp/logistic: examples/wsp/logistic.c include/hetcoll_wsp.h libhetcoll_wsp.la
	@$(MKDIR_P) examples/wsp
	$(MPICC) -o $@ $(link_wsp_example)
examples/wsp/logistic_on_gpu: examples/wsp/logistic.c include/hetcoll_wsp.h libhetcoll_wsp.la \
		$(emulated_gpu_lib)/libcuda.so.1
	@$(MKDIR_P) examples/wsp
	$(MPICC) -o $@ -DWITH_CUDA $(CUDA_CPPFLAGS) $(link_wsp_example) $(emulated_gpu_lib)/libcuda.so.1
endif
