#!/bin/sh
# The emulated GPU answers as emulated_gpu/conformance.expected says. After a change on purpose, in
# the build folder:
#   make check TESTS=emulated_gpu/conformance_test.sh; cp conformance.answers SOURCE/emulated_gpu/conformance.expected
set -u
unset EMU_FAIL EMU_HOSTILE EMU_ID_STAYS EMU_POOLS EMU_VMM EMU_VA_REUSE
emulated_gpu/conformance >conformance.out || exit
grep -v '^#' conformance.out >conformance.answers
diff -u "$HETCOLL_SRCDIR/emulated_gpu/conformance.expected" conformance.answers
