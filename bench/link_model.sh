#!/bin/bash
# link_model.sh [BUILD]: measures what the schedules are worth on links of known speed. Runs the component on the
# emulated GPU, whose links carry the list speeds of a shipped topology times one common scale. Prints each ratio
# next to the same ratio without a link model. It says nothing about a GPU.
#
# A run counts only if the processors were less than half busy. Otherwise they were the limit, not the links.
# Environment: SCALE (of DGX-1V files), SWITCHED_SCALE (of the DGX A100), BYTES, ITERATIONS.
set -eu
here=$(dirname "$(readlink -f "$0")")
cd "${1:-build}" 2>/dev/null && [ -x hetcoll_bench ] || {
    echo "link_model.sh: ${1:-build} has no hetcoll_bench: give the folder in which hetcoll was built" >&2
    exit 1
}
scale=${SCALE:-0.004} switched=${SWITCHED_SCALE:-0.002}
bytes=${BYTES:-16M} iterations=${ITERATIONS:-5}
build=$PWD
. "$here/job.sh"
use_emulated_links
machines=$here/../topology/machines

# times TOPOLOGY SCALE RANKS WAYS SIZES: "way bytes median_us" lines, and "busy SHARE".
times()
{
    local before busy output
    before=$(processor_time)
    output=$(EMU_LINKS=$1 EMU_LINK_SCALE=$2 EMU_NODE=links$$.$2 timeout -k 5 900 \
        "$(configured MPIRUN)" --mca coll hetcoll -n "$3" ./hetcoll_bench --memory device \
        --algorithms "$4" --sizes "$5" --iterations "$iterations" --warmup 1 2>/dev/null </dev/null)
    busy=$(busy_since "$before")
    echo "$output" | awk '$11 == "ok" && $2 ~ /^[0-9]+$/ { print $1, $2, $7 }'
    echo "busy $busy"
}

median() { awk -v way="$2" -v size="$3" '$1 == way && $2 == size { print $3 }' <<<"$1"; }

# predicted TOPOLOGY BYTES RANKS ALGORITHM: what as many bytes more cost at list speed, in us: what links carry. (The
# price less that of 8 bytes would leave out what overlaps with latencies.)
predicted()
{
    local bytes prices=
    for bytes in "$2" $((2 * $2)); do
        prices+=" $(./hetcoll_info explain --bytes "$bytes" --small-limit 0 --ranks "$3" --topology "$1" 2>/dev/null |
            awk -v name="$4" '$1 == name { print $2 }')"
    done
    awk '{ print ($2 > $1 + 0 ? $2 - $1 : 0) }' <<<"$prices"
}

# compare TOPOLOGY RANKS FASTER BASELINE SIZES
compare()
{
    local modelled plain size busy
    modelled=$(times "$1" "$use_scale" "$2" "$3,$4" "$5")
    plain=$(times "$1" 1000 "$2" "$3,$4" "$5") # links a thousand times as fast: none
    busy=$(awk '$1 == "busy" { print $2 }' <<<"$modelled")
    for size in $(awk '$1 != "busy" { print $2 }' <<<"$modelled" | sort -nu); do
        local fast slow fast_plain slow_plain price
        fast=$(median "$modelled" "$3" "$size") slow=$(median "$modelled" "$4" "$size")
        fast_plain=$(median "$plain" "$3" "$size") slow_plain=$(median "$plain" "$4" "$size")
        price=$(predicted "$1" "$size" "$2" "$3")
        awk -v name="$(basename "$1")" -v ranks="$2" -v size="$size" -v way="$3" -v base="$4" \
            -v fast="$fast" -v slow="$slow" -v fp="${fast_plain:-0}" -v sp="${slow_plain:-0}" \
            -v price="${price:-0}" -v scale="$use_scale" -v busy="$busy" -v note="$(counts "$busy")" 'BEGIN {
                at_scale = price / scale
                plain = fp > 0 && sp > 0 ? sprintf("%.2f", sp / fp) : "-"
                over = at_scale > 0 ? sprintf("%.2f", fast / at_scale) : "-"
                printf "%-26s %5d %10d  %-9s %10.0f  %-9s %10.0f %7.2f %9s %9s %5.2f%s\n", name, ranks,
                    size, way, fast, base, slow, slow / fast, plain, over, busy, note }'
    done
}

echo "# what          allreduce of float on device memory; link model, not GPU speed"
header
echo "# links         list speeds of topology/machines, times $scale (DGX-1V), $switched (DGX A100)"
echo "# times         median of $iterations, slowest rank, ways in turns in one run, every element checked"
echo "# baselines     ring, tree: the same component's over the same links, the ring in the order that they like;"
echo "#               on the full DGX-1V these are six rings through NVLinks. host_copy: copied to pageable"
echo "#               host memory, reduced by Open MPI, copied back, as Open MPI's own component does"
echo "# unthrottled   the same ratio where links cost nothing: processors and memory only"
echo "# over price    time / the price of as many bytes more (hetcoll_info explain, of twice the size less this one), at"
echo "#               this scale"
echo "# busy          share of all processors while it ran; 0.50 and more does not count"
echo "#"
echo "#topology                  ranks      bytes  way               us  baseline          us   ratio unthrott. over price busy"
use_scale=$scale
for gpus in 0,1,4 0,3,4 0,1,2,4 0,1,2,3,4; do
    compare "$machines/dgx1v.topology:$gpus" "$(tr , '\n' <<<"$gpus" | wc -l)" tree ring "$bytes"
done
compare "$machines/dgx1v.topology" 8 ring tree "$bytes,64M"
compare "$machines/dgx1v.topology" 8 auto tree "$bytes,64M"
use_scale=$switched
compare "$machines/dgxa100.topology:0-3" 4 two_shot host_copy 1M,4M,16M,64M
