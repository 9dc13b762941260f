# What all tools answer to wrong input.
if HAVE_BENCH_HEADERS
TESTS += test/tools/bad_inputs.sh
endif
EXTRA_DIST += test/tools/bad_inputs.sh test/tools/bad_inputs.txt
