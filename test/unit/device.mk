unit_sources_device = \
	test/unit/device_context_test.cc \
	test/unit/device_cuda.h \
	test/unit/device_driver_test.cc \
	test/unit/device_fixed_point_test.cc \
	test/unit/device_host_view_test.cc test/unit/device_gdr.h \
	test/unit/device_nvtx_test.cc \
	test/unit/device_queued_calls_test.cc \
	test/unit/device_reduce_test.cc \
	test/unit/device_signal_test.cc \
	test/unit/device_streams_test.cc
