hetcoll_sources += \
	aggregator/client.h \
	aggregator/client_library.h aggregator/client_library.cc \
	aggregator/endpoint.h aggregator/endpoint.cc

# A rank's side, which the component loads where coll_hetcoll_aggregators is set.
hetcoll_aggregators_sources += \
	aggregator/client.cc \
	aggregator/clients.cc \
	aggregator/frame.h aggregator/frame.cc \
	aggregator/names.h aggregator/names.cc \
	aggregator/openssl_library.h aggregator/openssl_library.cc \
	aggregator/protocol.h aggregator/protocol.cc \
	aggregator/rdma_device.h aggregator/rdma_device.cc \
	aggregator/rdma_queue_pairs.h aggregator/rdma_queue_pairs.cc \
	aggregator/session.h aggregator/session.cc \
	aggregator/socket.h aggregator/socket.cc \
	aggregator/standstill.h \
	aggregator/tcp_connection.h aggregator/tcp_connection.cc aggregator/tcp_connect.cc \
	aggregator/tcp_connections.h aggregator/tcp_guests.cc aggregator/tcp_rdma.cc \
	aggregator/tcp_wire.h aggregator/tcp_wire.cc \
	aggregator/tls.h aggregator/tls.cc \
	aggregator/uct_library.h aggregator/uct_library.cc \
	aggregator/wire.h

# What the two have in common: a copy each.
hetcoll_aggregators_common = \
	aggregator/endpoint.cc \
	base/element.cc \
	base/file_mark.cc \
	base/own_user.cc \
	base/status.cc

hetcoll_tools_sources += \
	aggregator/group.h aggregator/group.cc \
	aggregator/server.h aggregator/server.cc
