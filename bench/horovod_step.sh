#!/bin/bash
# horovod_step.sh [BUILD] [PAIRS]: measures what hetcoll costs a step of training with Horovod on host tensors, on 2
# ranks. Trainings come in pairs, one with hetcoll and one with --mca coll ^hetcoll, in changing order. The result is
# the ratio of their median steps, as the median over the pairs and its spread. Writes a results file to stdout. Needs
# what examples/horovod/setup.sh makes (HOROVOD_ENV=DIRECTORY names another place).
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:-build}" && pwd) || exit 1
pairs=${2:-12}
epochs=${EPOCHS:-12}
environment=${HOROVOD_ENV:-$here/../build/horovod}
training=$here/../examples/horovod/train_digits.py
[ -x "$environment/bin/python" ] || {
    echo "horovod_step.sh: no Horovod in $environment: run examples/horovod/setup.sh, or set HOROVOD_ENV" >&2
    exit 1
}
. "$here/job.sh"
use_component
mpirun=$(configured MPIRUN)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# step COMPONENTS [OPTION...]: the median step in ms.
step()
{
    local components=$1
    shift
    timeout -k 5 600 "$mpirun" -mca pml ob1 -mca btl ^openib -bind-to none -map-by slot \
        -mca coll "$components" -n 2 "$environment/bin/python" "$training" --epochs "$epochs" "$@" \
        >"$work/output" 2>"$work/errors" </dev/null || {
        cat "$work/output" "$work/errors" >&2
        exit 1
    }
    sed -n 's/^step_ms median \([0-9.]*\) .*/\1/p' "$work/output"
}

# quantile PERCENT: that quantile of the numbers on stdin, interpolated if need be.
quantile()
{
    sort -n | awk -v p="$1" '{ x[NR] = $1 }
        END { at = 1 + (NR - 1) * p / 100; low = int(at); print x[low] + (at - low) * (x[low < NR ? low + 1 : low] - x[low]) }'
}

# setting NAME [OPTION...]
setting()
{
    local name=$1 pair with without
    shift
    rm -f "$work"/with "$work"/without "$work"/ratio
    for ((pair = 0; pair < pairs; ++pair)); do
        if [ $((pair % 2)) -eq 0 ]; then
            with=$(step hetcoll "$@") && without=$(step ^hetcoll "$@") || exit 1
        else
            without=$(step ^hetcoll "$@") && with=$(step hetcoll "$@") || exit 1
        fi
        echo "$with" >>"$work/with"
        echo "$without" >>"$work/without"
        awk "BEGIN { print $with / $without }" >>"$work/ratio"
    done
    printf '%-8s %12.3f %12.3f %8.3f   %.3f to %.3f   %.3f to %.3f\n' "$name" \
        "$(quantile 50 <"$work/without")" "$(quantile 50 <"$work/with")" "$(quantile 50 <"$work/ratio")" \
        "$(quantile 25 <"$work/ratio")" "$(quantile 75 <"$work/ratio")" \
        "$(quantile 0 <"$work/ratio")" "$(quantile 100 <"$work/ratio")"
}

echo "# what          a step of examples/horovod/train_digits.py on host tensors, 2 ranks"
header
echo "# launched      as Horovod does: pml ob1, not bound"
echo "# horovod       $("$environment/bin/python" -c 'import horovod, torch; print(horovod.__version__ + ", PyTorch " + torch.__version__)')"
echo "# pairs         $pairs of trainings of $epochs epochs, interleaved; median step of each, of the slower rank"
echo "#"
echo "# ratio: median step with hetcoll over the same without, of each pair; its median and spread."
echo "# sent     without (ms)    with (ms)    ratio   middle half        all pairs"
setting float
setting half --fp16-allreduce
