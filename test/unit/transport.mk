unit_sources_transport = \
	test/unit/child.h \
	test/unit/device_cuda.h \
	test/unit/failing_call.h \
	test/unit/transport_adapter_messages_test.cc \
	test/unit/transport_device_bounce_test.cc \
	test/unit/transport_exporter_test.cc \
	test/unit/transport_fd_socket_test.cc \
	test/unit/transport_known_reach_test.cc \
	test/unit/transport_node_identity_test.cc \
	test/unit/transport_peer.cc \
	test/unit/transport_peer.h \
	test/unit/transport_peer_errors_test.cc \
	test/unit/transport_peer_memory_test.cc \
	test/unit/transport_reach_probe_test.cc \
	test/unit/transport_shared_page_test.cc
