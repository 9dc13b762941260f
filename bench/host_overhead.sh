#!/bin/bash
# host_overhead.sh [BUILD_DIR] [PAIRS]: measures what hetcoll costs an Allreduce of host buffers. Runs come in pairs,
# one with hetcoll and one with --mca coll ^hetcoll, in changing order and pinned. The result is the ratio of their
# medians, as the median over the pairs and its spread. Writes a results file to stdout.
set -u
build=$(cd "${1:-.}" && pwd) || exit 1
pairs=${2:-40}
sizes=8,24,64K
iterations=${HETCOLL_ITERATIONS:-500} batch=20
. "$(dirname "$0")/job.sh"
use_component
mpirun=$(configured MPIRUN)
context=
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# run RANKS COMPONENTS FILE: one job. Ranks are not pinned if there are more of them than cores.
run()
{
    local place="--bind-to core"
    [ "$1" -le "$(nproc)" ] || place="--oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
    # shellcheck disable=SC2086
    timeout 300 "$mpirun" --mca pml ob1 --mca coll "$2" -n "$1" $place "$build/hetcoll_bench" --memory host \
        --op band --dtype long --sizes "$sizes" --iterations "$iterations" --batch $batch --warmup 20 --no-verify \
        $context --json "$3" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

# setting NAME RANKS
setting()
{
    local pair
    rm -f "$work"/*.json
    for ((pair = 0; pair < pairs; ++pair)); do
        if [ $((pair % 2)) -eq 0 ]; then
            run "$2" hetcoll "$work/with.$pair.json"
            run "$2" ^hetcoll "$work/without.$pair.json"
        else
            run "$2" ^hetcoll "$work/without.$pair.json"
            run "$2" hetcoll "$work/with.$pair.json"
        fi
    done
    python3 - "$work" "$1" "$2" "$pairs" <<'PYTHON'
import json, statistics, sys
work, name, ranks, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
def load(kind, i):
    with open(f"{work}/{kind}.{i}.json") as file:
        return json.load(file)
runs = [(load("with", i), load("without", i)) for i in range(pairs)]
for row in range(len(runs[0][0]["results"])):
    ours = [a["results"][row]["median_us"] for a, _ in runs]
    plain = [b["results"][row]["median_us"] for _, b in runs]
    ratio = sorted(x / y for x, y in zip(ours, plain))
    low, high = ratio[len(ratio) // 4], ratio[(3 * len(ratio)) // 4]
    result = runs[0][0]["results"][row]
    print(f"{name:12} {ranks:5d} {result['bytes']:8d} {result['path']:>8} "
          f"{statistics.median(plain):12.3f} {statistics.median(ours):12.3f} "
          f"{statistics.median(ratio):8.3f}   {low:.3f} to {high:.3f}   {ratio[0]:.3f} to {ratio[-1]:.3f}")
PYTHON
}

run 2 hetcoll "$work/header.json"
grep -E '^# (date|machine|mpi|commit)' "$work/log"
echo "# pml           ob1"
echo "# pairs         $pairs of runs, interleaved, of $iterations times $batch calls a size; slowest rank; 2 ranks pinned to a core each"
echo "# load          $(cut -d' ' -f1-3 /proc/loadavg) when it began"
echo "# operation     MPI_Allreduce band of int64, host memory, out of place"
echo "#"
echo "# no_gpu: no rank can have a GPU. emulated: every rank holds a context of an emulated one."
echo "# ratio: median time with hetcoll over the same without, of each pair; its median and spread."
echo "# setting    ranks    bytes     path  without (us)  with (us)    ratio   middle half        all pairs"
setting no_gpu 2
setting no_gpu 4
use_emulated_gpu
context=--gpu-context
setting emulated 2
setting emulated 4
