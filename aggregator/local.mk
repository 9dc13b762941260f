hetcoll_sources += \
	aggregator/client.h \
	aggregator/endpoint.h aggregator/endpoint.cc
