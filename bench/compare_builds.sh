#!/bin/bash
# compare_builds.sh BUILD_DIR BASE_BUILD_DIR [PAIRS]: how long a small MPI_Allreduce takes with the component of one build
# folder, over the same with the component of another one. Runs come in pairs in changing order, by one hetcoll_bench,
# two ranks pinned to a core each, on host memory and on the device memory of the emulated GPU. It compares the
# processor's part of a call. Writes a results file to stdout.
set -u
build=$(cd "${1:?compare_builds.sh BUILD_DIR BASE_BUILD_DIR [PAIRS]}" && pwd) || exit 1
base=$(cd "${2:?compare_builds.sh BUILD_DIR BASE_BUILD_DIR [PAIRS]}" && pwd) || exit 1
pairs=${3:-20}
here=$(cd "$(dirname "$0")" && pwd)
. "$here/job.sh"
use_component
use_emulated_gpu
mpirun=$(configured MPIRUN)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# run BUILD_DIR MEMORY FILE
run()
{
    OMPI_MCA_mca_base_component_path=$(component_path "$1") \
        timeout 120 "$mpirun" --mca pml ob1 --mca coll hetcoll -n 2 --bind-to core "$build/hetcoll_bench" --memory "$2" \
        --sizes 8 --iterations 400 --batch 20 --warmup 50 --no-verify --json "$3" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
}

header
echo "# base          $(cd "$base" && git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
echo "# pairs         $pairs of runs, interleaved, of 400 times 20 calls of 8 bytes; slowest rank; 2 ranks, a core each"
echo "#"
echo "# ratio: median time of a call over the base's, of each pair; its median and spread."
echo "# memory   base (us)  this (us)   ratio   middle half        all pairs"
for memory in host device; do
    for ((pair = 0; pair < pairs; ++pair)); do
        order="this base"
        [ $((pair % 2)) -eq 0 ] || order="base this"
        for which in $order; do
            folder=$build
            [ $which = this ] || folder=$base
            run "$folder" $memory "$work/$memory.$which.$pair.json"
        done
    done
    python3 - "$work" $memory "$pairs" <<'PYTHON'
import json, statistics, sys
work, memory, pairs = sys.argv[1], sys.argv[2], int(sys.argv[3])
def median_us(which, pair):
    with open(f"{work}/{memory}.{which}.{pair}.json") as file:
        return json.load(file)["results"][0]["median_us"]
this, base = ([median_us(which, pair) for pair in range(pairs)] for which in ("this", "base"))
ratio = sorted(a / b for a, b in zip(this, base))
print(f"{memory:8} {statistics.median(base):11.3f} {statistics.median(this):10.3f} {statistics.median(ratio):7.3f}   "
      f"{ratio[pairs // 4]:.3f} to {ratio[3 * pairs // 4]:.3f}   {ratio[0]:.3f} to {ratio[-1]:.3f}")
PYTHON
done
