unit_sources_transport = test/unit/device_cuda.h test/unit/transport_device_bounce_test.cc
