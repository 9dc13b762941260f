unit_sources_pointer_cache = \
	test/unit/device_cuda.h \
	test/unit/pointer_cache_allocation_table_test.cc \
	test/unit/pointer_cache_errors_test.cc \
	test/unit/pointer_cache_fake_ucm.h test/unit/pointer_cache_fake_ucm.cc \
	test/unit/pointer_cache_find_test.cc \
	test/unit/pointer_cache_hooked_test.cc \
	test/unit/pointer_cache_host_memory_test.cc \
	test/unit/pointer_cache_memory_kinds.h \
	test/unit/pointer_cache_random_test.cc \
	test/unit/pointer_cache_threads_test.cc

# The program itself plays libucm: the cache looks the functions up in it.
test_unit_pointer_cache_test_LDFLAGS = $(AM_LDFLAGS) -export-dynamic
