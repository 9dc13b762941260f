hetcoll_sources += \
	aggregator/client.h aggregator/client.cc \
	aggregator/endpoint.h aggregator/endpoint.cc \
	aggregator/openssl_library.h aggregator/openssl_library.cc \
	aggregator/protocol.h aggregator/protocol.cc \
	aggregator/session.h aggregator/session.cc \
	aggregator/tcp_wire.h aggregator/tcp_wire.cc \
	aggregator/tls.h aggregator/tls.cc \
	aggregator/wire.h

hetcoll_tools_sources += \
	aggregator/group.h aggregator/group.cc \
	aggregator/server.h aggregator/server.cc
