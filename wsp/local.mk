# libhetcoll_wsp, installed: wave-synchronous training over any Open MPI. It has its own copies of the
# few parts of the core that it needs, and exports the functions of hetcoll_wsp.h only.
EXTRA_DIST += wsp/exports.map
if WITH_OMPI
lib_LTLIBRARIES += libhetcoll_wsp.la
include_HEADERS += include/hetcoll_wsp.h

# What includes mpi.h is compiled with flags of its own, so that the rest is compiled once for all.
noinst_LTLIBRARIES += libhetcoll_wsp_mpi.la
libhetcoll_wsp_mpi_la_SOURCES = \
	wsp/c_api.cc \
	wsp/exchange.h wsp/exchange.cc \
	wsp/takes_device.h wsp/takes_device.cc \
	wsp/training.h wsp/training.cc \
	wsp/wave_clock.h
libhetcoll_wsp_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS) -DOMPI_SKIP_MPICXX=1

noinst_LTLIBRARIES += libhetcoll_wsp_vectors.la
libhetcoll_wsp_vectors_la_SOURCES = wsp/vectors.h wsp/host_vectors.cc
if WITH_CUDA
libhetcoll_wsp_vectors_la_SOURCES += wsp/device_vectors.cc
else
libhetcoll_wsp_vectors_la_SOURCES += wsp/no_device_vectors.cc cuda_kernels/host_reduce.cc
endif

libhetcoll_wsp_la_SOURCES = \
	base/element.h base/element.cc \
	base/log.h base/log.cc \
	base/padding.h base/padding.cc \
	base/status.h base/status.cc
if WITH_CUDA
libhetcoll_wsp_la_SOURCES += \
	cuda_kernels/fixed_point.h cuda_kernels/fixed_point.cc \
	cuda_kernels/host_reduce.cc \
	cuda_kernels/kernel_image.S \
	cuda_kernels/kernel_names.cc \
	device/context.h device/context.cc \
	device/device.h device/device.cc \
	device/driver.h device/driver.cc \
	device/kernels.h device/kernels.cc \
	device/memory_use.h \
	device/queued_calls.h device/queued_calls.cc \
	pointer_cache/allocation_table.h pointer_cache/allocation_table.cc \
	pointer_cache/host_memory.h pointer_cache/host_memory.cc \
	pointer_cache/memory_events.h pointer_cache/memory_events.cc \
	pointer_cache/pointer_cache.h pointer_cache/pointer_cache.cc
endif
libhetcoll_wsp_la_LDFLAGS = $(AM_LDFLAGS) $(HETCOLL_SANITIZED_DSO) -version-info 0:0:0 -Wl,-z,defs \
	-Wl,--version-script=$(srcdir)/wsp/exports.map
libhetcoll_wsp_la_DEPENDENCIES = libhetcoll_wsp_mpi.la libhetcoll_wsp_vectors.la wsp/exports.map
libhetcoll_wsp_la_LIBADD = libhetcoll_wsp_mpi.la libhetcoll_wsp_vectors.la $(MPI_LIBS) -ldl
endif
