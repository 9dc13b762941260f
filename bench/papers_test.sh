#!/bin/sh
# docs/internals/papers.md shows what bench/results/papers.txt has, and bench/papers.sh still makes every table of it.
set -u
cd "$HETCOLL_SRCDIR" || exit 1
[ -x "$HETCOLL_BUILDDIR/hetcoll_sim" ] && command -v python3 >/dev/null || exit 77
papers="awan netreduce hetpipe"
[ -x "$HETCOLL_BUILDDIR/bench/dgx1_classes" ] && papers="$papers blink" # a micro-benchmark, built on demand
failures=0

# check WHAT COMMAND...: the command succeeds.
check()
{
    what=$1
    shift
    if "$@"; then
        echo "ok    $what"
    else
        echo "FAIL  $what"
        failures=$((failures + 1))
    fi
}

made=$(mktemp) || exit 1
trap 'rm -f "$made"' EXIT
check "the page shows the results" python3 -B bench/papers/page.py
for machine_classes in "DGX-1P 14" "DGX-1V 46"; do
    machine=${machine_classes% *} classes=${machine_classes#* }
    check "$classes classes of a $machine" [ "$(grep -c "^$machine  *[0-7]" bench/results/papers.txt)" = "$classes" ]
done
# shellcheck disable=SC2086
few_rows() { bash bench/papers.sh --small "$HETCOLL_BUILDDIR" $papers >"$made"; }
# has_rows NAME: the section has a line with numbers below its head and its columns' names.
has_rows() { sed -n "/^## $1:/,/^\$/p" "$made" | grep -v '^#' | grep -q '^ *[A-Za-z0-9-]* .*[0-9]\.[0-9]'; }
check "few rows of every table" few_rows
for paper in $papers; do
    for name in $(sed -n "s/^## \($paper-[a-z]*\):.*/\1/p" bench/results/papers.txt); do
        check "$name" has_rows "$name"
    done
done
exit $((failures > 0))
