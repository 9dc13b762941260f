#!/bin/bash
# idups.sh [BUILD_DIR [RUNS [among]]]: how often five MPI_Comm_idup of an inter-communicator in flight complete, with
# hetcoll and without: RUNS (20) of each on 3, 4 and 6 ranks, by turns. With "among", two of a communicator that does
# other collectives meanwhile. Whatever has not ended within 10 s (5 s) is taken for a deadlock. Fails if hetcoll's runs
# are significantly fewer (Fisher's exact test, 1 %). Writes a results file to stdout.
set -u
build=$(cd "${1:-${HETCOLL_BUILDDIR:-.}}" && pwd) || exit 1
runs=${2:-20} idups=5 rounds=3 limit=10 among=
if [ "${3:-}" = among ]; then
    idups=2 rounds=1 limit=5 among=among
fi
here=$(cd "$(dirname "$0")/../.." && pwd)
. "$here/bench/job.sh"
use_emulated_links
export OMPI_MCA_btl_vader_single_copy_mechanism=none
mpirun=$(configured MPIRUN)
header
echo "# runs          $runs of each, by turns, of $rounds rounds of $idups MPI_Comm_idup${among:+ among other collectives}; $limit s each"
echo "#"
echo "# ranks  ended with hetcoll  without"

# ends RANKS COMPONENTS: whether a run does.
ends()
{
    EMU_NODE="idups.$$" timeout -k 5 $limit "$mpirun" --mca pml ob1 --mca coll "$2" -n "$1" "$build/test/mpi/idups" \
        $idups $rounds ${among:+"$among"} >/dev/null 2>&1 </dev/null
}

all_with=0 all_without=0
for ranks in 3 4 6; do
    with=0 without=0
    for ((run = 0; run < runs; ++run)); do
        ends $ranks hetcoll && with=$((with + 1))
        ends $ranks ^hetcoll && without=$((without + 1))
    done
    printf '%7d %19d %8d\n' $ranks $with $without
    all_with=$((all_with + with)) all_without=$((all_without + without))
done
python3 - $((3 * runs)) $all_with $all_without <<'PYTHON'
import sys
from math import comb
runs, ended, without = map(int, sys.argv[1:])
both = ended + without
p = sum(comb(runs, i) * comb(runs, both - i) for i in range(max(0, both - runs), ended + 1)) / comb(2 * runs, both)
print(f"# all: {ended} of {runs} with hetcoll, {without} without; so few or fewer by chance: {p:.3f}")
sys.exit(p < 0.01)
PYTHON
