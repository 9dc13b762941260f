hetcoll_sources += \
	transport/bounce.h \
	transport/device_bounce.h transport/device_bounce.cc \
	transport/host_bounce.h transport/host_bounce.cc
