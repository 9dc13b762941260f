#!/bin/bash
# horovod_replay.sh [BUILD]: replays the Allreduces and broadcasts of training ResNet-50 with Horovod, from recorded
# traces, on the emulated GPU with the links of four GPUs of a DGX A100. hetcoll and copying to the host, reducing
# there and copying back take turns in one run. Then calls as small as the smallest ones, again and again. Writes a
# results file to stdout. It says nothing about a GPU, because the links are modelled, at list speed times SCALE.
#
# A run counts only if the processors were less than half busy. Otherwise they were the limit, not the links.
# Environment: SCALE, SHRINK (a divisor of all sizes, for trying it out).
set -eu
here=$(dirname "$(readlink -f "$0")")
cd "${1:-build}" 2>/dev/null && [ -x bench/horovod_replay ] && [ -e bench/horovod_half.so ] || {
    echo "horovod_replay.sh: ${1:-build} has no bench/horovod_replay and bench/horovod_half.so: make them there" >&2
    exit 1
}
scale=${SCALE:-0.002} shrink=${SHRINK:-1}
build=$PWD
. "$here/job.sh"
use_emulated_links
machine=$here/../topology/machines/dgxa100.topology:0-3
work=$(mktemp) || exit 1
trap 'rm -f "$work" "$work".*' EXIT

# job SCALE PROGRAM ARGUMENT...: on four ranks.
job()
{
    local at=$1
    shift
    EMU_LINKS=$machine EMU_LINK_SCALE=$at EMU_NODE=replay$$.$at timeout -k 5 1800 \
        "$(configured MPIRUN)" -mca pml ob1 -mca btl ^openib -bind-to none --mca coll hetcoll -n 4 "$@" \
        2>"$work.errors" </dev/null || {
        cat "$work.errors" >&2
        echo "horovod_replay.sh: the job failed, its words are above: $*" >&2
        return 1
    }
}

play() # SCALE OPTION... TRACE
{
    local at=$1
    shift
    job "$at" bench/horovod_replay "$@"
}

# Small calls in place, in the same memory again and again: what a job of more than ten steps has.
again() # TYPE
{
    job "$scale" ./hetcoll_bench --memory device --in-place --datatype "$1" --sizes 4,512,2000,4096,16K,64K \
        --algorithms auto,host_copy --iterations 100 --warmup 20 >"$work"
    awk -v type="$1" '
        $1 == "auto" && $11 == "ok" { us[$2] = $7; order[++sizes] = $2 }
        $1 == "host_copy" && $11 == "ok" { copy[$2] = $7 }
        END { for (i = 1; i <= sizes; ++i) { s = order[i]
            printf "Allreduce %-14s %-7d %6s %11s %12.4f %12.4f %7.2f\n", type, s, "again", "", us[s] / 1e3, copy[s] / 1e3,
                copy[s] / us[s] } }' "$work"
}

sum_of() { awk -v column="$1" '$1 == "Allreduce" && $3 == "all" { sum += $column } END { printf "%.0f\n", sum }' "$work"; }

first=yes
for kind in float half; do
    trace=$here/traces/horovod_resnet50_$kind.csv
    checked=$(play 1000 --check --in-kernels --shrink $((shrink * 8)) "$trace") || { echo "$checked" >&2; exit 1; }
    before=$(processor_time)
    play "$scale" --compare --shrink "$shrink" "$trace" >"$work"
    busy=$(busy_since "$before")
    if [ $first = yes ]; then
        echo "# what          Allreduce and Bcast of training ResNet-50, 10 steps; link model, not GPU speed"
        sed -n '/^# trace/d; /^# cuda_driver/d; /^#/p' "$work" | sed '$d'
        echo "# links         list speeds of ${machine##*/}, times $scale"
        [ "$shrink" = 1 ] || echo "# shrink        calls with 1/$shrink of their elements"
        echo "#"
        sed -n '/^# call/p' "$work"
        first=no
    fi
    echo "# $kind, with 1/$((shrink * 8)) of the elements: $checked"
    grep -v '^#' "$work"
    echo "# $kind: processors $busy busy$(counts "$busy")"
    play 1000 --compare --shrink "$shrink" "$trace" >"$work.plain"
    awk '$1 == "Allreduce" && $3 == "all" { ours += $6; copy += $7 }
        END { printf "# '$kind': where links cost nothing, host_copy / hetcoll is %.2f for Allreduce\n", copy / ours }' "$work.plain"
    eval "moved_$kind=$(sum_of 9) time_$kind=$(sum_of 6) copy_$kind=$(sum_of 7)"
done
echo "# again: each size in the same memory in place, the median of 100 calls, in turns"
before=$(processor_time)
again float
again float16
busy=$(busy_since "$before")
echo "# again: processors $busy busy$(counts "$busy")"
# shellcheck disable=SC2154
awk "BEGIN {
    printf \"# Allreduce, host_copy / hetcoll: float %.2f, half %.2f (target: 2)\n\", $copy_float / $time_float, $copy_half / $time_half
    printf \"# bytes moved, half / float: %.3f (target: 0.5)\n\", $moved_half / $moved_float }"
