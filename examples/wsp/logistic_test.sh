#!/bin/bash
# logistic.c reaches the loss of distance 0 with every distance up to 4, within 1 %, on host memory and on
# an emulated GPU, while steps are late at random.
set -u
# shellcheck source=examples/wsp/environment.sh
. "$(dirname "$0")/environment.sh"
export EMU_NODE=logistic$$

# train RANKS PROGRAM DISTANCE COMPONENTS
train()
{
    timeout -k 5 900 "$mpirun" --mca coll "$4" -n "$1" "$build/examples/wsp/$2" "$3" jitter \
        >"$work/out" 2>"$work/errors" </dev/null
}

# compare RANKS PROGRAM DISTANCE COMPONENTS LOSS
compare()
{
    train "$1" "$2" "$3" "$4" && near "$(loss)" "$5"
    verdict $? "$2, $1 ranks: $(cat "$work/out"), against $5"
}

for ranks in 2 4; do
    train $ranks logistic 0 ^hetcoll
    first=$(loss)
    for distance in 1 2 3 4; do
        compare $ranks logistic $distance ^hetcoll "$first"
    done
done
if [ -x "$build/examples/wsp/logistic_on_gpu" ]; then # the same samples
    train 2 logistic 0 ^hetcoll
    first=$(loss)
    for distance in 0 2 4; do
        compare 2 logistic_on_gpu $distance hetcoll "$first"
    done
fi
finish
