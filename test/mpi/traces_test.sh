#!/bin/bash
# traces_test.sh: what mpi_trace records of horovod_replay is what horovod_replay was given: the same
# functions, types, operations and numbers of calls.
set -u
build=${HETCOLL_BUILDDIR:-$PWD}
traces=$(cd "$(dirname "$0")/../../bench/traces" && pwd)
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
if [ -n "${HETCOLL_SANITIZER:-}" ]; then
    echo '0 passed, 0 failed, 1 skipped' # a sanitizer's library wants to be the first that is loaded
    exit 77
fi
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Without sizes, which are smaller here, and times; without what training and replay each do alone.
calls()
{
    cut -d, -f1-5,8 "$1" | grep -vE '^Allgather,|,BOR,|^Allreduce,MPI_UINT64_T|^fn' |
        awk -F, -v OFS=, '{ calls[$1 OFS $2 OFS $3 OFS $4 OFS $5] += $6 } END { for (kind in calls) print kind, calls[kind] }' |
        sort
}

passed=0 failed=0
for trace in horovod_resnet50_float horovod_resnet50_half; do
    timeout -k 5 900 "${MPIRUN:-$(configured MPIRUN)}" -n 2 -x "LD_PRELOAD=$build/bench/mpi_trace.so" \
        -x "MPI_TRACE=$work/$trace" "$build/bench/horovod_replay" --check --host --shrink 512 "$traces/$trace.csv" \
        >"$work/output" 2>&1 </dev/null || cat "$work/output"
    if diff <(calls "$traces/$trace.csv") <(calls "$work/$trace"); then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  $trace: < the trace, > recorded of its replay"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
