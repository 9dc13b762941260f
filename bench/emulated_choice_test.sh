#!/bin/bash
# bench/emulated_choice.sh still compares the choice with all algorithms, on one node and on two.
set -u
build=$HETCOLL_BUILDDIR
[ -x "$build/hetcoll_bench" ] || exit 77
out=$(MACHINES='pcie8:0-1 2 1  pcie8:0 1 2' SIZES=64K ITERATIONS=1 SCALE=0.1 \
    bash "$HETCOLL_SRCDIR/bench/emulated_choice.sh" "$build" 2>&1) || {
    echo "FAIL  bench/emulated_choice.sh: $out"
    exit 1
}
failures=0
for line in 'pcie8:0-1 +2 +1' 'pcie8:0 +2 +2'; do
    if grep -qE "^$line +64K +[0-9]+ +[a-z_0-9]+ +[0-9]+ +[0-9.]+ [0-9.]+" <<<"$out"; then
        echo "ok    a ratio for $line"
    else
        echo "FAIL  no ratio for $line in: $out"
        failures=1
    fi
done
exit $failures
