hetcoll_sources += \
	device/context.h device/context.cc \
	device/device.h device/device.cc \
	device/driver.h device/driver.cc \
	device/gdr_library.h device/gdr_library.cc \
	device/host_view.h device/host_view.cc \
	device/kernels.h device/kernels.cc \
	device/memory_use.h \
	device/queued_calls.h device/queued_calls.cc \
	device/nvtx.h device/nvtx.cc
