hetcoll_sources += \
	base/element.h base/element.cc \
	base/log.h base/log.cc \
	base/p2p.h \
	base/request_pool.h \
	base/slots.h \
	base/status.h base/status.cc
