#!/bin/bash
# wsp_bench.sh [BUILD_DIR]: measures what wave-synchronous training saves at 4 ranks: with jitter, without the library's
# thread, and with one rank that is always half as fast. Writes a results file to stdout. Takes three minutes.
set -u
build=$(cd "${1:-.}" && pwd) || exit 1
[ -x "$build/bench/wsp_bench" ] || { echo "wsp_bench.sh: no bench/wsp_bench in $build: make -C $build bench/wsp_bench" >&2; exit 1; }
. "$(dirname "$0")/job.sh"
use_component
run()
{
    timeout 300 "$(configured MPIRUN)" --mca coll ^hetcoll --mca mpi_yield_when_idle 1 --bind-to none --oversubscribe \
        -n 4 "$build/bench/wsp_bench" "$@" || exit 1
}
echo "# what          time of a wave of training against the clock distance; faster: than distance 0"
run --sigma 0.6 | sed "/^# times/a # load          $(cut -d' ' -f1-3 /proc/loadavg) when it began"
run --no-header --sigma 0.3
echo "#"
echo "# Without the thread, and without any other call of MPI while a step computes:"
run --no-header --sigma 0.6 --progress-us 0
echo "#"
echo "# One rank always half as fast: no distance helps. What is left between distance 0 and the others is the time of"
echo "# the sums, which they hide."
run --no-header --sigma 0 --slow 2
run --no-header --sigma 0.3 --slow 2
