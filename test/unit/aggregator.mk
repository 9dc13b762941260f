unit_sources_aggregator = \
	test/fuzz/decode_fuzz.h \
	test/unit/aggregator_client_library_test.cc \
	test/unit/aggregator_endpoint_test.cc \
	test/unit/aggregator_failure_test.cc \
	test/unit/aggregator_house.h \
	test/unit/aggregator_join_test.cc \
	test/unit/aggregator_names_test.cc \
	test/unit/aggregator_network.cc \
	test/unit/aggregator_network.h \
	test/unit/aggregator_protocol_test.cc \
	test/unit/aggregator_rdma_test.cc \
	test/unit/aggregator_silence_test.cc \
	test/unit/aggregator_sums_test.cc \
	test/unit/aggregator_tcp_house.h \
	test/unit/aggregator_tcp_test.cc \
	test/unit/child.h \
	test/unit/cuda_kernels_reference.cc test/unit/cuda_kernels_reference.h
