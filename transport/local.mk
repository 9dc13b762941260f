hetcoll_sources += \
	transport/adapter_messages.h transport/adapter_messages.cc \
	transport/allocation.cc \
	transport/bounce.h \
	transport/device_bounce.h transport/device_bounce.cc \
	transport/device_work.h transport/device_work.cc \
	transport/export_cache.h \
	transport/exporter.h transport/exporter.cc \
	transport/fd_socket.h transport/fd_socket.cc \
	transport/host_bounce.h transport/host_bounce.cc \
	transport/known_reach.h transport/known_reach.cc \
	transport/node_identity.h transport/node_identity.cc \
	transport/peer_mapping.h transport/peer_mapping.cc \
	transport/peer_memory.h transport/peer_memory.cc \
	transport/pull_streams.h transport/pull_streams.cc \
	transport/reach_probe.h transport/reach_probe.cc \
	transport/shared_page.h transport/shared_page.cc \
	transport/shm_budget.h transport/shm_budget.cc \
	transport/ucp_context.h transport/ucp_context.cc \
	transport/ucp_library.h transport/ucp_library.cc \
	transport/vmm_pieces.h transport/vmm_pieces.cc
