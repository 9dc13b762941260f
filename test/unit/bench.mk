unit_sources_bench = \
	test/unit/bench_trace_test.cc
