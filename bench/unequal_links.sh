#!/bin/bash
# unequal_links.sh shares|late [BUILD]: measures what weighted shares, or beginning without a late rank
# (docs/unequal-gpus.md), are worth on links of known speed. Eight emulated GPUs are on one switch, each with a
# port of its own. `shares` also measures GPUs that are each the only one of a node, by messages through host memory.
# It says nothing about a GPU.
#
# A line counts only if the processors were less than half busy. Otherwise they were the limit, not the links.
# Environment: SCALE of the links, BYTES, ITERATIONS.
set -eu
here=$(dirname "$(readlink -f "$0")")
what=${1:-}
case $what in
shares | late) ;;
*)
    echo "unequal_links.sh: '$what' is neither shares nor late: say which of them to measure" >&2
    exit 2
    ;;
esac
cd "${2:-build}" 2>/dev/null && [ -x hetcoll_bench ] || {
    echo "unequal_links.sh: ${2:-build} has no hetcoll_bench: give the folder in which hetcoll was built" >&2
    exit 1
}
scale=${SCALE:-0.005} bytes=${BYTES:-16777216} iterations=${ITERATIONS:-5} port=12
build=$PWD
. "$here/job.sh"
use_emulated_links
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# box GBPS...: prints a topology file with a GPU for each rate.
box()
{
    local i=0
    printf 'hetcoll topology 1\npcie switch\ncpu cpu0\nlink switch cpu0 pcie 1 24\n'
    for rate in "$@"; do
        printf 'gpu gpu%d 0000:%02x:00.0\nlink gpu%d switch pcie 1 %s\n' $i $((16 + i)) $i "$rate"
        i=$((i + 1))
    done
}
box $port $port $port $port $port $port $port $port >"$work/equal"
box $port $port $port $((port / 2)) $port $port $port $port >"$work/half"

# own_node half|equal PROGRAM...: every rank is on a node of its own. With `half`, one has a slow GPU.
for rate in $port $((port / 2)); do
    printf 'hetcoll topology 1\ncpu cpu0\ngpu gpu0 0000:10:00.0\nlink gpu0 cpu0 pcie 1 %s\n' "$rate" >"$work/own$rate"
done
cat >"$work/own_node" <<END
#!/bin/sh
rank=\$OMPI_COMM_WORLD_RANK rate=$port
if [ "\$1\$rank" = half3 ]; then
    rate=$((port / 2))
fi
shift
export EMU_LINKS=$work/own\$rate EMU_NODE=\$EMU_NODE.\$rank OMPI_MCA_coll_hetcoll_node=node\$rank
exec "\$@"
END
chmod +x "$work/own_node"
wrapper=

# times TOPOLOGY WAYS OPTION...: prints "way median_us" lines, and "busy SHARE". $settings are MCA options, $wrapper is
# what starts the program.
times()
{
    local before busy output topology=$1 ways=$2
    shift 2
    before=$(processor_time)
    # shellcheck disable=SC2086
    output=$(EMU_LINKS=$work/$topology EMU_LINK_SCALE=$scale EMU_NODE=unequal$$ timeout -k 5 900 \
        "$(configured MPIRUN)" --mca coll hetcoll $settings -n 8 $wrapper ./hetcoll_bench --memory device \
        --algorithms "$ways" --sizes "$bytes" --iterations "$iterations" "$@" 2>/dev/null </dev/null)
    busy=$(busy_since "$before")
    echo "$output" | awk '$11 == "ok" && $2 ~ /^[0-9]+$/ { print $1, $7 }'
    echo "busy $busy"
}
field() { awk -v name="$2" '$1 == name { print $2 }' <<<"$1"; }
vector_us=$(awk -v b="$bytes" -v p=$port -v s="$scale" 'BEGIN { print b / (p * 1e3 * s) }') # M / b

echo "# what          allreduce of float on device memory, 8 ranks; link model, not GPU speed"
header
echo "# links         $port GB/s each way for every GPU (half: one of $((port / 2))), times $scale, to one switch"
echo "# vector        $bytes bytes, M/b $vector_us us"
echo "# times         us, median of $iterations, slowest rank, ways in turns in one run, every element checked"
echo "# busy          share of all processors while it ran; 0.50 and more does not count"

# share_line half|equal NAME
share_line()
{
    local result busy
    result=$(times "$1" weighted,ring --warmup 1)
    busy=$(field "$result" busy)
    awk -v links="$1" -v name="$2" -v w="$(field "$result" weighted)" -v r="$(field "$result" ring)" \
        -v v="$vector_us" -v busy="$busy" -v note="$(counts "$busy")" 'BEGIN {
        t = links == "half" ? 2 * v : 14 / 8 * v
        printf "%-15s %9.0f %9.0f %9.0f %14.2f %11.2f %5.2f%s\n", name, w, r, t, r / w, w / t, busy, note }'
}

if [ "$what" = shares ]; then
    echo "# messages      every GPU on a node of its own, shares given, links to host memory and none behind it"
    echo "# T             max(2(P-1)M / sum b, M / min b), which no allreduce can beat"
    echo "#links           weighted      ring         T  ring/weighted  weighted/T  busy"
    settings="--mca coll_hetcoll_shares auto"
    share_line half half
    share_line equal equal
    settings="--mca coll_hetcoll_shares 1,1,1,0,1,1,1,1" wrapper="$work/own_node half"
    share_line half half,messages
    settings="--mca coll_hetcoll_shares 1,1,1,1,1,1,1,1" wrapper="$work/own_node equal"
    share_line equal equal,messages
    exit
fi
late_us=$(awk -v v="$vector_us" 'BEGIN { print 2 * v }')
echo "# late          rank 3 by 2 M/b; random: every rank by up to M/b. Times from when the last rank has come"
echo "#lateness         on          off         ring   on/ring    on/off  busy"
for lateness in late random; do
    case $lateness in
    late) options="--late-rank 3 --late-us $late_us" ;;
    random) options="--jitter-us $vector_us" ;;
    esac
    settings="--mca coll_hetcoll_skew 1"
    # shellcheck disable=SC2086
    on=$(times equal auto,ring --warmup 17 $options)
    settings="--mca coll_hetcoll_skew 0"
    # shellcheck disable=SC2086
    off=$(times equal auto,ring --warmup 3 $options)
    busy=$(printf '%s\n%s\n' "$(field "$on" busy)" "$(field "$off" busy)" | sort -n | tail -n 1)
    awk -v name=$lateness -v on="$(field "$on" auto)" -v off="$(field "$off" auto)" \
        -v ring="$(field "$on" ring)" -v busy="$busy" -v note="$(counts "$busy")" 'BEGIN {
        printf "%-9s %11.0f  %11.0f  %11.0f %9.2f %9.2f %5.2f%s\n", name, on, off, ring, on / ring, on / off, busy, note }'
done
