#!/bin/bash
# compare.sh [BUILD]: trains on 2 and 4 ranks with hetcoll and without, launched as Horovod launches,
# gradients as float and as half, and compares. BUILD is where hetcoll was built; without it, hetcoll
# must be installed. Ends with 0 if everything is the same.
#
#   HOROVOD_ENV=DIRECTORY  what setup.sh made; default ../../build/horovod
#   DEVICE=cuda            tensors on GPUs
#
# Two ranks: the same parameters to the last bit. More ranks add up in an order that depends on what
# Horovod happened to fuse, without hetcoll too: the same losses within TOLERANCE.
set -u
here=$(cd "$(dirname "$0")" && pwd)
environment=${HOROVOD_ENV:-$here/../../build/horovod}
TOLERANCE=0.02 # of the loss
epochs=${EPOCHS:-5}
limit=300 # seconds for one training
[ -x "$environment/bin/python" ] || {
    echo "compare.sh: no Horovod in $environment: run setup.sh, or set HOROVOD_ENV" >&2
    exit 2
}
mpirun=mpirun
if [ $# -gt 0 ]; then
    build=$(cd "$1" && pwd) || exit 2
    configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
    mpirun=$(configured MPIRUN)
    export OMPI_MCA_mca_base_component_path="$build/component:$(configured OMPI_COMPONENTS)"
fi
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# train COMPONENTS RANKS FILE [OPTION...]
train()
{
    local components=$1 ranks=$2 file=$3
    shift 3
    local place=
    [ "$ranks" -le "$(nproc)" ] || place="--oversubscribe -mca mpi_yield_when_idle 1"
    # shellcheck disable=SC2086
    timeout -k 5 $limit "$mpirun" -mca pml ob1 -mca btl ^openib -bind-to none -map-by slot $place \
        -mca coll "$components" -n "$ranks" "$environment/bin/python" "$here/train_digits.py" \
        --epochs "$epochs" --device "${DEVICE:-cpu}" "$@" >"$file" 2>"$file.errors" </dev/null || {
        echo "FAILED  training with coll $components, $ranks ranks, $*: exit status $?"
        tail -n 20 "$file" "$file.errors"
        return 1
    }
}

# compare RANKS OPTION...
passed=0 failed=0 beside=
compare()
{
    local ranks=$1 why=
    shift
    local line="$ranks ranks${*:+, $*}${beside:+, $beside}"
    if ! train hetcoll "$ranks" "$work/with" "$@" || ! train ^hetcoll "$ranks" "$work/without" "$@"; then
        failed=$((failed + 1))
        return
    fi
    if [ "$ranks" -le 2 ] && ! diff <(grep -v step_ms "$work/with") <(grep -v step_ms "$work/without") >"$work/diff"; then
        why="not the same to the last bit"
    fi
    # The losses, line by line.
    paste -d ' ' <(grep '^epoch' "$work/with") <(grep '^epoch' "$work/without") |
        awk -v tolerance="$TOLERANCE" -v epochs="$epochs" '
            { distance = $4 - $8; if (distance < 0) distance = -distance
              if (distance > tolerance * $8) bad = 1; last = $4 }
            NR == 1 { first = $4 }
            END { exit bad || NR != epochs || last >= first / 2 }' ||
        why="${why:+$why; }losses differ by more than $TOLERANCE of their size, or do not halve"
    if [ -n "$why" ]; then
        failed=$((failed + 1))
        echo "FAILED  $line: $why"
        paste "$work/with" "$work/without" | sed 's/^/        | /'
    else
        passed=$((passed + 1))
        echo "passed  $line: $(grep '^epoch' "$work/with" | tail -n 1), $(grep accuracy "$work/with"), $(grep checksum "$work/with")"
    fi
}

for ranks in ${RANKS:-2 4}; do
    compare "$ranks"
    compare "$ranks" --fp16-allreduce
done
# Where ranks may have a GPU, hetcoll serves small vectors of host memory itself.
if [ $# -gt 0 ] && [ -e "$build/emulated_gpu/lib/libcuda.so.1" ]; then
    export LD_LIBRARY_PATH="$build/emulated_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export EMU_KERNELS="$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so" EMU_NODE=compare$$
    beside="beside an emulated GPU"
    compare 2
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
