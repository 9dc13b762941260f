#!/bin/bash
# papers.sh [--small] [BUILD [PAPER...]]: the headline figures of the four papers that hetcoll follows, beside ours on
# the same case. Papers are awan, blink, netreduce and hetpipe. Writes a results file to stdout; docs/papers.md shows
# parts of it (bench/papers/page.py). Some minutes of one core. --small makes a few rows of each table, for a test.
set -u
small=
[ "${1:-}" = --small ] && small=--small && shift
build=$(cd "${1:-.}" && pwd) || exit 1
[ $# -gt 0 ] && shift
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/bench/job.sh"
header
echo "# result        arithmetic, simulated, or measured on processors, as each section says; nothing ran on a GPU"
failures=0
[ $# -gt 0 ] || set -- awan blink netreduce hetpipe
for paper in "$@"; do
    # shellcheck disable=SC2086
    python3 -B "$here/bench/papers/$paper.py" "$build" $small || failures=$((failures + 1))
done
echo
echo "# $failures failures"
exit $((failures > 0))
