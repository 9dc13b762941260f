# Tests of the aggregator as processes, on loopback and between network namespaces.
if WITH_CUDA
if WITH_OPENSSL
if HAVE_BENCH_HEADERS
check_PROGRAMS += test/aggregator/worker
TESTS += test/aggregator/process_test.sh test/aggregator/strangers.sh
endif
endif
endif
test_aggregator_worker_SOURCES = \
	test/aggregator/ring.h test/aggregator/ring.cc \
	test/aggregator/worker.cc
test_aggregator_worker_LDADD = libhetcoll_command_line.la libhetcoll_aggregators.la libhetcoll.la
EXTRA_DIST += test/aggregator/net.sh test/aggregator/process_test.sh test/aggregator/soak.sh \
	test/aggregator/strangers.sh test/aggregator/strangers.py
# Not a part of make check in this length.
check-strangers: hetcoll_aggregator test/aggregator/worker
	bash $(srcdir)/test/aggregator/strangers.sh . 600 >strangers.txt; status=$$?; cat strangers.txt; exit $$status
