hetcoll_sources += \
	pointer_cache/allocation_table.h pointer_cache/allocation_table.cc \
	pointer_cache/host_memory.h pointer_cache/host_memory.cc \
	pointer_cache/memory_events.h pointer_cache/memory_events.cc \
	pointer_cache/pointer_cache.h pointer_cache/pointer_cache.cc
