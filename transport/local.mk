hetcoll_sources += \
	transport/bounce.h \
	transport/device_bounce.h transport/device_bounce.cc \
	transport/exporter.h \
	transport/fd_channel.h \
	transport/host_bounce.h transport/host_bounce.cc \
	transport/node_identity.h \
	transport/peer_memory.h \
	transport/reach_probe.h \
	transport/shared_page.h
