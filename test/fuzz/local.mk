# Everything that hetcoll reads and did not write itself. make check-fuzz FUZZ_SECONDS=600 fuzzes each target for
# that long; FUZZ_TARGETS names some. make check tries changed copies of the corpus.
FUZZ_SECONDS = 20
FUZZ_TARGETS =
check-fuzz:
	$(SHELL) $(srcdir)/test/fuzz/check_fuzz.sh $@ $(FUZZ_SECONDS) $(FUZZ_TARGETS)

fuzz_target_sources = \
	test/fuzz/control_page.h test/fuzz/control_page.cc \
	test/fuzz/decode_fuzz.h \
	test/fuzz/targets.h test/fuzz/targets.cc \
	test/unit/memory_network.h test/unit/memory_network.cc \
	tools/info_trace.h tools/info_trace.cc
fuzz_libs = libhetcoll_info.la libhetcoll_place.la libhetcoll_command_line.la $(core_and_tools)

if HAVE_GTEST
if HAVE_BENCH_HEADERS
if WITH_CUDA
all_unit_tests += test/fuzz/corpus_test
endif
endif
endif
test_fuzz_corpus_test_SOURCES = $(fuzz_target_sources) test/fuzz/corpus_test.cc
nodist_EXTRA_test_fuzz_corpus_test_SOURCES = linked_by_cxx.cc
test_fuzz_corpus_test_LDADD = $(fuzz_libs) -lgtest_main -lgtest

# Built by check_fuzz.sh alone.
EXTRA_PROGRAMS += test/fuzz/hetcoll_fuzz
test_fuzz_hetcoll_fuzz_SOURCES = $(fuzz_target_sources) test/fuzz/libfuzzer.cc
nodist_EXTRA_test_fuzz_hetcoll_fuzz_SOURCES = linked_by_cxx.cc
test_fuzz_hetcoll_fuzz_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
test_fuzz_hetcoll_fuzz_LDADD = $(fuzz_libs)
EXTRA_DIST += test/fuzz/check_fuzz.sh test/fuzz/corpus
