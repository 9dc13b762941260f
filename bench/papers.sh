#!/bin/bash
# papers.sh [--small] [BUILD [PAPER...]]: the headline figures of the four papers that hetcoll follows, next to ours for
# the same case. Papers are awan, blink, netreduce and hetpipe. Writes a results file to stdout. bench/papers/page.py
# copies parts of it to docs/internals/papers.md. Takes some minutes of one core. --small makes a few rows of each table,
# for a test.
set -u
small=
[ "${1:-}" = --small ] && small=--small && shift
build=$(cd "${1:-.}" && pwd) || exit 1
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- awan blink netreduce hetpipe
here=$(cd "$(dirname "$0")/.." && pwd)
for paper in "$@"; do
    [ -f "$here/bench/papers/$paper.py" ] && continue
    echo "papers.sh: no paper '$paper', write awan, blink, netreduce or hetpipe" >&2
    exit 1
done
. "$here/bench/job.sh"
header
echo "# result        arithmetic, simulated, or measured on processors, as each section says; nothing ran on a GPU"
failures=0
for paper in "$@"; do
    # shellcheck disable=SC2086
    python3 -B "$here/bench/papers/$paper.py" "$build" $small || failures=$((failures + 1))
done
echo
echo "# $failures failures"
exit $((failures > 0))
