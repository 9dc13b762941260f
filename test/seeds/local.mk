# Deterministic runs of all ranks of a communicator: seeds.cc. make check tries a few seeds, make check-seeds SEEDS=...
# as many as wanted, from the first on.
SEEDS = 100000
check-seeds: test/seeds/seeds
	$(SHELL) $(srcdir)/test/seeds/seeds_test.sh 1 $(SEEDS)
.PHONY: check-seeds

if HAVE_GTEST
if WITH_CUDA
check_PROGRAMS += test/seeds/seeds
TESTS += test/seeds/seeds_test.sh
endif
endif
test_seeds_seeds_SOURCES = test/seeds/buffer.cc test/seeds/buffer.h test/seeds/plan.cc test/seeds/plan.h \
	test/seeds/report.cc test/seeds/report.h test/seeds/scheduler.cc test/seeds/scheduler.h test/seeds/seeds.cc \
	test/seeds/vectors.cc test/seeds/vectors.h test/seeds/verdict.cc test/seeds/verdict.h test/seeds/witness.cc \
	test/seeds/witness.h test/seeds/world.cc test/seeds/world.h test/unit/failing_allocations.cc \
	test/unit/calling_object.h test/unit/failing_allocations.h test/unit/float_modes.h test/unit/memory_network.cc \
	test/unit/memory_network.h test/unit/engine_process.h
nodist_EXTRA_test_seeds_seeds_SOURCES = linked_by_cxx.cc
test_seeds_seeds_LDADD = $(unit_libs)
EXTRA_DIST += test/seeds/seeds_test.sh
