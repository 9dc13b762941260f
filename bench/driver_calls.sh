#!/bin/bash
# driver_calls.sh BUILD all|cpu: driver calls of one MPI_Allreduce on device memory once its shape is known, as the
# emulated driver counts them on rank 0, the mean of 20 calls. all: every way to serve a call. cpu: small vectors that the
# processor reads and writes, and what such calls take over those that copy, on the emulated GPU: no time is a GPU's. A
# minute. Writes a results file to stdout.
set -u
build=$(cd "${1:?driver_calls.sh BUILD all|cpu}" && pwd) || exit 1
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/bench/job.sh"
case ${2:-} in
all) area=costs what='driver calls of one MPI_Allreduce on device memory, counted' ;;
cpu) area=cpu_path what='small device vectors by the processor: driver calls, counted, and times of processors' ;;
*)
    echo "driver_calls.sh: say all or cpu, not '${2:-}'" >&2
    exit 1
    ;;
esac
echo "# what          $what"
header
echo "# gpu           emulated: no time here is a GPU's"
echo "# made by       bench/driver_calls.sh BUILD $2"
echo "#"
# Cases and what they counted, without the words of the test.
export HETCOLL_BUILDDIR=$build
bash "$here/test/mpi/cases/$area.sh" steady_state |
    sed -E 's/^passed +(steady_state.*) \([0-9]+ s\)$/\n\1/; s/^ +\| note steady_state:/ /' || exit 1
[ "$2" = cpu ] || exit 0

use_emulated_links
export EMU_GDR=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
echo
echo "# 2 ranks, algorithm host. us: the median of 2000 calls in turns, slowest rank; ratio: over blocking calls. host_copy:"
echo "# copied to the host, reduced there by Open MPI, copied back."
for limits in '-1 by the processor' '0 by copies'; do
    read -r limit how <<<"$limits"
    for run in 1 2 3; do
        echo "# $how, run $run"
        timeout -k 5 100 "$(configured MPIRUN)" --mca coll hetcoll --mca pml ob1 --mca coll_hetcoll_algorithm host \
            --mca coll_hetcoll_cpu_read_limit "$limit" --mca coll_hetcoll_cpu_write_limit "$limit" -n 2 \
            "$build/hetcoll_bench" --memory device --sizes 4,8,256,2K,4K,8K --warmup 20 --iterations 2000 \
            --algorithms auto,persistent,nonblocking,host_copy 2>/dev/null </dev/null | grep -v '^#' || exit 1
    done
done
