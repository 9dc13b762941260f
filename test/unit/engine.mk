unit_sources_engine = \
	test/unit/engine_exchange_test.cc \
	test/unit/engine_executor_test.cc \
	test/unit/memory_network.h test/unit/memory_network.cc
