hetcoll_sources += \
	aggregator/client.h aggregator/client.cc \
	aggregator/endpoint.h aggregator/endpoint.cc \
	aggregator/proof.h aggregator/proof.cc \
	aggregator/protocol.h aggregator/protocol.cc \
	aggregator/session.h aggregator/session.cc \
	aggregator/ucx_library.h aggregator/ucx_library.cc \
	aggregator/ucx_wire.h aggregator/ucx_wire.cc \
	aggregator/wire.h

hetcoll_tools_sources += \
	aggregator/group.h aggregator/group.cc \
	aggregator/server.h aggregator/server.cc \
	aggregator/tcp_silence.h aggregator/tcp_silence.cc
