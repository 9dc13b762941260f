# The emulated CUDA driver, libcuda.so.1 in the build tree. Never installed.
emulated_gpu_sources += \
	emulated_gpu/attributes.cc \
	emulated_gpu/calls.cc emulated_gpu/calls.h \
	emulated_gpu/capture.cc emulated_gpu/capture.h \
	emulated_gpu/contexts.cc emulated_gpu/contexts.h \
	emulated_gpu/copies.cc emulated_gpu/copies.h \
	emulated_gpu/cuda_on_host.h \
	emulated_gpu/devices.cc \
	emulated_gpu/direct_rdma.cc \
	emulated_gpu/driver_versions.cc emulated_gpu/driver_versions.h \
	emulated_gpu/emulated_gpu.h \
	emulated_gpu/entry_points.cc \
	emulated_gpu/errors.cc \
	emulated_gpu/events.cc emulated_gpu/events.h \
	emulated_gpu/faults.cc emulated_gpu/faults.h \
	emulated_gpu/footprint.cc emulated_gpu/footprint.h \
	emulated_gpu/handles.cc emulated_gpu/handles.h \
	emulated_gpu/hostile_waits.cc emulated_gpu/hostile_waits.h \
	emulated_gpu/hostility.cc emulated_gpu/hostility.h \
	emulated_gpu/ipc.cc emulated_gpu/ipc.h \
	emulated_gpu/kernel_abi.h \
	emulated_gpu/kernels.cc emulated_gpu/kernels.h \
	emulated_gpu/lateness.cc emulated_gpu/lateness.h \
	emulated_gpu/leaks.cc emulated_gpu/leaks.h \
	emulated_gpu/limits.cc emulated_gpu/limits.h \
	emulated_gpu/link_clock.h \
	emulated_gpu/links.cc emulated_gpu/links.h \
	emulated_gpu/memory.cc emulated_gpu/memory.h \
	emulated_gpu/memory_calls.cc \
	emulated_gpu/modules.cc emulated_gpu/modules.h \
	emulated_gpu/node.cc emulated_gpu/node.h \
	emulated_gpu/patchable.h emulated_gpu/pools.cc \
	emulated_gpu/protection.cc emulated_gpu/protection.h \
	emulated_gpu/report.cc emulated_gpu/report.h \
	emulated_gpu/sanitizers.h \
	emulated_gpu/settings.cc emulated_gpu/settings.h \
	emulated_gpu/sticky_errors.cc emulated_gpu/sticky_errors.h \
	emulated_gpu/stream_calls.cc \
	emulated_gpu/streams.cc emulated_gpu/streams.h \
	emulated_gpu/vmm.cc \
	emulated_gpu/window.cc emulated_gpu/window.h
EXTRA_DIST += emulated_gpu/generate.sh emulated_gpu/README.md

# What the driver knows of a machine, apart from it: tests and the emulated NVML use it too.
if WITH_CUDA
noinst_LTLIBRARIES += emulated_gpu/libmachine.la
endif
emulated_gpu_libmachine_la_SOURCES = \
	emulated_gpu/machine.cc emulated_gpu/machine.h \
	emulated_gpu/routes.cc

# The emulated NVML, libnvidia-ml.so.1 beside libcuda.so.1.
emulated_gpu_nvml_sources = \
	emulated_gpu/hostility.cc emulated_gpu/hostility.h \
	emulated_gpu/nvml.cc emulated_gpu/nvml_abi.h \
	emulated_gpu/report.cc emulated_gpu/report.h \
	emulated_gpu/settings.cc emulated_gpu/settings.h

# An emulated GDRCopy, libgdrapi.so.2 beside libcuda.so.1.
emulated_gdrapi_sources = emulated_gpu/gdrapi.cc

# What depends on the cuda.h at hand: error names, versions, and all entry points that are not
# emulated. The directory of cuda.h is the first of CUDA_CPPFLAGS (-isystem DIR).
emulated_gpu_generated = emulated_gpu/error_names.inc emulated_gpu/entry_point_versions.inc \
	emulated_gpu/stubs.c
emulated_gpu_generate = @test -d emulated_gpu || mkdir -p emulated_gpu; \
	set -- $(CUDA_CPPFLAGS); $(SHELL) $(srcdir)/emulated_gpu/generate.sh
emulated_gpu/error_names.inc: emulated_gpu/generate.sh
	$(emulated_gpu_generate) errors "$$2" > $@
emulated_gpu/entry_point_versions.inc: emulated_gpu/generate.sh
	$(emulated_gpu_generate) versions "$$2" > $@
emulated_gpu/stubs.c: emulated_gpu/generate.sh
	$(emulated_gpu_generate) stubs "$$2" > $@
nodist_emulated_gpu_libcuda_la_SOURCES = emulated_gpu/stubs.c
emulated_gpu/errors.lo: emulated_gpu/error_names.inc
emulated_gpu/driver_versions.lo: emulated_gpu/entry_point_versions.inc
CLEANFILES += $(emulated_gpu_generated)

# The CUDA runtime by this driver, libcudart.so.13 (or 12, that of the toolkit) beside it.
emulated_runtime_sources = \
	emulated_gpu/runtime.cc emulated_gpu/runtime.h \
	emulated_gpu/runtime_kernels.cc \
	emulated_gpu/runtime_memory.cc \
	emulated_gpu/runtime_streams.cc
emulated_runtime_generated = emulated_gpu/runtime_error_names.inc emulated_gpu/runtime_stubs.c \
	emulated_gpu/runtime.map
emulated_gpu/runtime_error_names.inc: emulated_gpu/generate.sh
	$(emulated_gpu_generate) runtime_errors "$$2" > $@
emulated_gpu/runtime_stubs.c: emulated_gpu/generate.sh
	$(emulated_gpu_generate) runtime_stubs "$$2" > $@
emulated_gpu/runtime.map: emulated_gpu/generate.sh
	$(emulated_gpu_generate) runtime_map "$$2" > $@
nodist_emulated_gpu_libcudart_la_SOURCES = emulated_gpu/runtime_stubs.c
emulated_gpu/runtime.lo: emulated_gpu/runtime_error_names.inc
CLEANFILES += $(emulated_runtime_generated)

# The questions to a driver. Its answers here are compared in make check, a real GPU's in make
# check-gpu.
if WITH_CUDA
check_PROGRAMS += emulated_gpu/conformance
TESTS += emulated_gpu/conformance_test.sh
endif
emulated_gpu_conformance_SOURCES = \
	emulated_gpu/conformance.cc emulated_gpu/conformance.h emulated_gpu/least_time.h \
	emulated_gpu/conformance_contexts.cc \
	emulated_gpu/conformance_errors.cc \
	emulated_gpu/conformance_ipc.cc \
	emulated_gpu/conformance_memory.cc \
	emulated_gpu/conformance_order.cc \
	emulated_gpu/conformance_timings.cc \
	emulated_gpu/conformance_waits.cc
emulated_gpu_conformance_LDADD = -ldl
EXTRA_DIST += emulated_gpu/conformance.expected emulated_gpu/conformance_test.sh
