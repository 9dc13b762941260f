hetcoll_sources += \
	aggregator/client.h aggregator/client.cc \
	aggregator/endpoint.h aggregator/endpoint.cc \
	aggregator/frame.h aggregator/frame.cc \
	aggregator/names.h aggregator/names.cc \
	aggregator/openssl_library.h aggregator/openssl_library.cc \
	aggregator/protocol.h aggregator/protocol.cc \
	aggregator/rdma_device.h aggregator/rdma_device.cc \
	aggregator/rdma_lanes.h aggregator/rdma_lanes.cc \
	aggregator/session.h aggregator/session.cc \
	aggregator/socket.h aggregator/socket.cc \
	aggregator/standstill.h \
	aggregator/tcp_wire.h aggregator/tcp_wire.cc \
	aggregator/tls.h aggregator/tls.cc \
	aggregator/uct_library.h aggregator/uct_library.cc \
	aggregator/wire.h

hetcoll_tools_sources += \
	aggregator/group.h aggregator/group.cc \
	aggregator/server.h aggregator/server.cc
