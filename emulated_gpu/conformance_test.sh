#!/bin/sh
# The emulated GPU answers as emulated_gpu/conformance.expected says: as an H200's driver of CUDA 13.0 has answered,
# bench/results/gpu_h200_conformance.txt. After a change on purpose, in the build folder:
#   make check TESTS=emulated_gpu/conformance_test.sh; cp conformance.answers SOURCE/emulated_gpu/conformance.expected
set -u
unset EMU_FAIL EMU_HOSTILE EMU_ID_STAYS EMU_POOLS EMU_VMM EMU_VA_REUSE
emulated_gpu/conformance >conformance.out || exit
grep -v '^#' conformance.out >conformance.answers
diff -u "$HETCOLL_SRCDIR/emulated_gpu/conformance.expected" conformance.answers || exit
# Each question to that GPU has its answer.
awk -F ': ' 'FNR == NR { over = over || /^conformance:/; if (!over) of_gpu[$1] = $0; next }
    $1 in of_gpu && of_gpu[$1] != $0 { print "an H200 answers: " of_gpu[$1] ", not: " $0; unlike = 1 }
    END { exit unlike }' "$HETCOLL_SRCDIR/bench/results/gpu_h200_conformance.txt" conformance.answers
