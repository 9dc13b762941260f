hetcoll_sources += \
	cuda_kernels/compiler.h \
	cuda_kernels/fixed_point.cc \
	cuda_kernels/fixed_point.cuh \
	cuda_kernels/fixed_point.h \
	cuda_kernels/floats.cuh \
	cuda_kernels/host_reduce.cc \
	cuda_kernels/kernel_image.S \
	cuda_kernels/kernel_names.cc \
	cuda_kernels/numbers.h \
	cuda_kernels/operations.h \
	cuda_kernels/reduction.h \
	cuda_kernels/reduction_list.h \
	cuda_kernels/user_op.h \
	cuda_kernels/user_op.cc

# What the kernels are made for, written anew only if it is something else than before.
cuda_kernels/arch_flags: arch-flags-always
	@test -d cuda_kernels || mkdir -p cuda_kernels
	@echo '$(NVCC_ARCH_FLAGS)' >$@.new; if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi
CLEANFILES += cuda_kernels/arch_flags

# The kernels for every architecture: a minute and a half of one core. -fmad=false: no fused multiply-add,
# so that a complex product has the same bits as on the host.
cuda_kernels_fatbin_sources = \
	cuda_kernels/copy.cuh \
	cuda_kernels/floats.cuh \
	cuda_kernels/thread.cuh \
	cuda_kernels/packed.cuh \
	cuda_kernels/reduce.cu \
	cuda_kernels/reduce.cuh \
	cuda_kernels/shared_lists.cuh \
	cuda_kernels/signal.cuh \
	cuda_kernels/wait.cuh
EXTRA_DIST += $(cuda_kernels_fatbin_sources)
cuda_kernels/reduce.fatbin: cuda_kernels/arch_flags $(cuda_kernels_fatbin_sources) base/element.h base/node_ranks.h cuda_kernels/compiler.h \
		cuda_kernels/numbers.h cuda_kernels/operations.h cuda_kernels/reduction.h \
		cuda_kernels/reduction_list.h
	@test -d cuda_kernels || mkdir -p cuda_kernels
	$(AM_V_GEN)for host in $(CXX); do case $$host in *ccache|*distcc) ;; *) break ;; esac; done; \
	$(NVCC) $(NVCC_ARCH_FLAGS) $(NVCCFLAGS) -ccbin "$$host" --threads 2 -std=c++17 -O3 -fmad=false \
		-I$(srcdir) $(CUDA_CPPFLAGS) --fatbin -o $@.tmp $(srcdir)/cuda_kernels/reduce.cu && \
	mv -f $@.tmp $@
CLEANFILES += cuda_kernels/reduce.fatbin cuda_kernels/reduce.fatbin.tmp

EXTRA_DIST += cuda_kernels/fixed_point.cu
cuda_kernels/fixed_point.fatbin: cuda_kernels/arch_flags cuda_kernels/fixed_point.cu cuda_kernels/fixed_point.cuh \
		cuda_kernels/fixed_point.h base/element.h base/node_ranks.h cuda_kernels/compiler.h cuda_kernels/thread.cuh \
		cuda_kernels/reduction.h cuda_kernels/signal.cuh
	@test -d cuda_kernels || mkdir -p cuda_kernels
	$(AM_V_GEN)for host in $(CXX); do case $$host in *ccache|*distcc) ;; *) break ;; esac; done; \
	$(NVCC) $(NVCC_ARCH_FLAGS) $(NVCCFLAGS) -ccbin "$$host" -std=c++17 -O3 -fmad=false \
		-I$(srcdir) $(CUDA_CPPFLAGS) --fatbin -o $@.tmp $(srcdir)/cuda_kernels/fixed_point.cu && \
	mv -f $@.tmp $@
CLEANFILES += cuda_kernels/fixed_point.fatbin cuda_kernels/fixed_point.fatbin.tmp

cuda_kernels/kernel_image.lo: cuda_kernels/reduce.fatbin cuda_kernels/fixed_point.fatbin
