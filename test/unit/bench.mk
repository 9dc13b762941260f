unit_sources_bench = \
	bench/trace.h bench/trace.cc \
	test/unit/bench_trace_test.cc
