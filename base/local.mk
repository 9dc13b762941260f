hetcoll_sources += \
	base/algorithm_list.h \
	base/element.h base/element.cc \
	base/hash.h \
	base/log.h base/log.cc \
	base/lost.h \
	base/p2p.h \
	base/request_pool.h \
	base/slots.h \
	base/status.h base/status.cc
