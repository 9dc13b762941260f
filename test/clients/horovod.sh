#!/bin/bash
# horovod.sh BUILD: Horovod, unchanged, on host tensors: examples/horovod trains with hetcoll and without,
# and horovod_calls.py makes every call that Horovod has, with hetcoll, also where a GPU is at hand.
# test/gpu/horovod_gpu.py is for CUDA tensors, and tried here.
# HOROVOD_ENV=DIRECTORY: what examples/horovod/setup.sh made; default BUILD/horovod.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-${HETCOLL_BUILDDIR:-$PWD}}" && pwd) || exit 2
export HOROVOD_ENV=${HOROVOD_ENV:-$build/horovod}
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
work=$(mktemp) || exit 2
trap 'rm -f "$work"' EXIT

bash "$here/../../examples/horovod/compare.sh" "$build" | tee "$work"
counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work")
passed=${counts% *} failed=${counts#* }
[ -n "$counts" ] || exit 2

OMPI_MCA_mca_base_component_path=$build/component:$(configured OMPI_COMPONENTS)
export OMPI_MCA_mca_base_component_path
# run RANKS LINES WHAT PROGRAM [OPTION...]: a line of the result. The program has to print LINES lines of "ok".
run()
{
    local ranks=$1 lines=$2 line="$3, $1 ranks${beside:+, $beside}"
    shift 3
    if timeout -k 5 300 "$(configured MPIRUN)" -mca pml ob1 -mca btl ^openib -bind-to none -map-by slot --oversubscribe \
        -mca mpi_yield_when_idle 1 -mca coll hetcoll -n "$ranks" "$HOROVOD_ENV/bin/python" "$@" \
        >"$work" 2>&1 </dev/null && [ "$(grep -c '^ok ' "$work")" = "$lines" ]; then
        passed=$((passed + 1))
        echo "passed  $line"
    else
        failed=$((failed + 1))
        echo "FAILED  $line"
        tail -n 20 "$work" | sed 's/^/        | /'
    fi
}
calls() { run "$1" 3 'every call of Horovod' "$here/horovod_calls.py"; }
beside=
calls 3
# The part that a GPU machine runs on CUDA tensors.
run 2 30 'checks of large tensors' "$here/../gpu/horovod_gpu.py" --device cpu
run 2 1 'a training' "$here/../gpu/horovod_gpu.py" --device cpu --train small --batch 8 --steps 5
beside="beside an emulated GPU"
export LD_LIBRARY_PATH="$build/emulated_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export EMU_KERNELS="$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so" EMU_NODE=horovod$$
calls 3
calls 4
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
