#!/bin/bash
# table_check.sh [--small] BUILD FOLDER: do tuning tables hold? Makes two of four machines on one and two nodes, A and B,
# each by jobs of its own, and checks each against what the other one was made from: measurements that it does not know.
# The machines are emulated GPUs whose links take the time of real ones: link model, not GPU speed. Writes into FOLDER
# table_check.txt, table_check-a.json, table_check-b.json and their measurements. Twelve minutes, on two cores on which
# nothing else runs. --small: little of one machine, for a test.
# Environment: LIMIT (seconds of hetcoll_tune, eight times), RANKS, SIZES, MACHINES (FILE/SCALE...).
set -eu
here=$(dirname "$(readlink -f "$0")")
machines=${MACHINES:-pcie8/0.02 dgx1v/0.01 dgxa100/0.004 dgx1v-0124/0.01}
limit=${LIMIT:-90} ranks=${RANKS:-4} sizes=${SIZES:-8,64,256,512,1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M}
options=()
if [ "${1:-}" = --small ]; then
    shift
    machines=dgxa100/0.1 limit=60 ranks=2 sizes=512,16K
    options=(--repetitions 1 --most-repetitions 1 --algorithms "one_shot,leader,ring,recursive_doubling")
fi
[ $# = 2 ] && [ -x "$1/hetcoll_tune" ] && [ -d "$2" ] || {
    echo 'table_check.sh: give the folder in which hetcoll was built, and one for the results' >&2
    exit 1
}
build=$(cd "$1" && pwd) folder=$(cd "$2" && pwd)
. "$here/job.sh"
use_emulated_links
cd "$folder"
rm -f table_check-[ab].json table_check-[ab].*.measurements # a table keeps the machines that it has

# make_table LETTER NAME SCALE: prints how busy the processors were.
make_table()
{
    local before
    before=$(processor_time)
    EMU_LINKS=$here/../topology/machines/$2.topology EMU_LINK_SCALE=$3 EMU_NODE=table_check$$ \
        "$build/hetcoll_tune" --output "table_check-$1.json" --machine "$2" --ranks "$ranks" --nodes 1,2 --fake-nodes \
        --sizes "$sizes" --limit "$limit" ${options[@]+"${options[@]}"} >"$log" 2>&1 </dev/null || {
        echo "table_check.sh: table $1 of $2: $(tail -n 1 "$log")" >&2
        exit 1
    }
    busy_since "$before"
}

# rules LETTER NAME: a line for each number of nodes, "nodes: algorithm to bytes, ..., algorithm".
rules()
{
    awk -v machine="\"machine\": \"$2\"" '
        index($0, "{\"machine\"") { mine = index($0, machine) }
        !mine { next }
        /"nodes_min"/ { nodes = $2 + 0 }
        /"msg_size_min"/ {
            gsub(/[{}",\]]/, "")
            text = text (text == "" ? "" : ", ") $6 ($4 == "inf" ? "" : " to " $4)
            if ($4 == "inf") {
                printf "  %s  %s: %s\n", letter, nodes == 1 ? "1 node " : "2 nodes", text
                text = ""
            }
        }' letter="$1" "table_check-$1.json"
}

# against LETTER OTHER NAME
against()
{
    "$build/hetcoll_tune" --check "table_check-$1.json" --from-measurements "table_check-$2.$3.measurements" |
        sed 's/^/  /; s/^  hetcoll_tune: //' || true
}

log=$(mktemp) && report=$(mktemp) || exit 1
trap 'rm -f "$log" "$report"' EXIT
{
    echo '# what          tuning tables of emulated GPUs with links, against fresh measurements; link model, not GPU speed'
    header
    echo "# links         topology/machines, list speeds times $machines"
    echo "# jobs          $ranks ranks, on 1 node and on 2 nodes (by coll_hetcoll_node), limit $limit s a table"
    echo "# sizes         $sizes"
    echo '# busy          share of all processors while a table was made. Small calls are processor time, whatever it is;'
    echo '#               what large ones say of links counts below 0.50'
    echo '# an exception  in three jobs of four at least, a choice that takes more than 1.15 times as long as the fastest'
    echo '#               algorithm, or a doubling of the size that takes more than three times as long'
    echo "# command       bench/table_check.sh BUILD FOLDER"
} >"$report"
for each in $machines; do
    name=${each%/*}
    {
        echo
        busy_a=$(make_table a "$name" "${each#*/}")
        busy_b=$(make_table b "$name" "${each#*/}")
        echo "$name: busy $busy_a and $busy_b"
        rules a "$name"
        rules b "$name"
        against a b "$name"
        against b a "$name"
    } >>"$report"
done
cp "$report" table_check.txt
