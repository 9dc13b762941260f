#!/bin/bash
# run.sh WORD...: the MPI cases whose line has one of the words, of all areas (all without words). By hand,
# from a build folder that is complete: HETCOLL_BUILDDIR=BUILD test/mpi/run.sh limits
set -u
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
for area in "$(dirname "$0")"/cases/*.sh; do
    bash "$area" "$@" | tee "$work/output" | grep -vE '^[0-9]+ passed, [0-9]+ failed'
    read -r p f s < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 0\4/p' "$work/output") ||
        { p=0 f=1 s=0 && echo "FAILED  $area: no end"; }
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + 10#$s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
