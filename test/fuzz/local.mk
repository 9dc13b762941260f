# Fuzzing, not a part of make check: make check-fuzz FUZZ_SECONDS=600.
FUZZ_SECONDS = 20
check-fuzz:
	HETCOLL_SRCDIR='$(srcdir)' $(SHELL) $(srcdir)/test/fuzz/check_fuzz.sh $(FUZZ_SECONDS)
EXTRA_DIST += test/fuzz/check_fuzz.sh test/fuzz/decode_fuzz.cc test/fuzz/decode_fuzz.h test/fuzz/decode_corpus
