#!/bin/sh
# hetcoll_sim as a user runs it, and the table that hetcoll_tune makes of it, read and chosen from.
set -u
. "$HETCOLL_SRCDIR/tools/info_says.sh"
tool=$HETCOLL_BUILDDIR

# expect WHAT TEXT COMMAND...: the output or error output holds TEXT.
expect()
{
    what=$1 text=$2
    shift 2
    "$@" >"$work/out" 2>&1
    grep -q -- "$text" "$work/out"
    verdict $? "$what: $text"
}

expect "small calls go through the host" " host  *small .* 4  *4 " \
    "$tool/hetcoll_sim" --topology "$machines/awan64.cluster" --nodes 4 --bytes 8
expect "a topology file is a node" " two_shot  *mapped " \
    "$tool/hetcoll_sim" --topology "$machines/dgxa100.topology" --bytes 64M
expect "switches that reduce" " in_network  *direct " \
    "$tool/hetcoll_sim" --topology "$machines/netreduce.cluster" --nodes 20 --bytes 1M --algorithm in_network
expect "which have no price" " 20  *20  *-  *[0-9.]* " \
    "$tool/hetcoll_sim" --topology "$machines/netreduce.cluster" --nodes 20 --bytes 1M --algorithm in_network
expect "nor one in JSON, where a ring has one" "^1$" sh -c "
    '$tool/hetcoll_sim' --topology '$machines/netreduce6.cluster' --bytes 1M --algorithm in_network,ring --json - 2>/dev/null |
        grep -c model_us"
expect "what cannot run is left out of a list" "# tree cannot run on 4 ranks" \
    "$tool/hetcoll_sim" --topology "$machines/awan64.cluster" --nodes 4 --bytes 64K --algorithm tree,ring
expect "weighted shares" " weighted  *mapped " \
    "$tool/hetcoll_sim" --topology "$machines/pcie8.topology" --bytes 1M --algorithm weighted --shares 2,1,1,1,1,1,1,0
expect "no such shares" "coll_hetcoll_shares '2;1' is unknown" \
    "$tool/hetcoll_sim" --topology "$machines/pcie8.topology" --bytes 1M --shares "2;1"
expect "an unknown algorithm" "'rings' is not one of hetcoll's" \
    "$tool/hetcoll_sim" --topology "$machines/awan64.cluster" --nodes 4 --bytes 8 --algorithm rings
expect "too many nodes" "has 64 nodes, --nodes asks for 65" \
    "$tool/hetcoll_sim" --topology "$machines/awan64.cluster" --nodes 65 --bytes 8
expect "a share below one byte" " two_shot  *mapped " \
    "$tool/hetcoll_sim" --topology "$machines/dgx2.topology" --bytes 8 --algorithm two_shot
expect "ranks that share a GPU" "leader  *mapped " \
    "$tool/hetcoll_sim" --topology "$machines/dgxh100.topology" --ranks-per-gpu 3 --bytes 8
expect "switches that reduce know none" "in_network is simulated with one rank per GPU" \
    "$tool/hetcoll_sim" --topology "$machines/netreduce.cluster" --bytes 1M --algorithm in_network --ranks-per-gpu 2
expect "nothing to reduce" "--bytes: '0' is not a size from 4 to" \
    "$tool/hetcoll_sim" --topology "$machines/dgx2.topology" --bytes 0
expect "more than any memory" "--bytes: '3T' is not a size" \
    "$tool/hetcoll_sim" --topology "$machines/dgx2.topology" --bytes 3T
expect "no such file" "nowhere" "$tool/hetcoll_sim" --topology nowhere --bytes 8
expect "no adapter" "has no network adapter" sh -c "
    grep -v -e mlx5 -e net0 '$machines/p100.topology' >'$work/alone.topology'
    '$tool/hetcoll_sim' --topology '$work/alone.topology' --nodes 2 --bytes 8"

"$tool/hetcoll_sim" --topology "$machines/dgx1v-014.topology" --bytes 64M --adapters --json "$work/sim.json" \
    >"$work/out" 2>&1 && grep -q '"adapter_parts": [1-9]' "$work/sim.json" &&
    python3 "$HETCOLL_SRCDIR/tools/schema_check.py" "$HETCOLL_SRCDIR/tools/schema" "$work/sim.json" >>"$work/out" 2>&1
verdict $? 'part of a vector goes through adapters'
grep -v -e mlx5 -e net0 "$machines/dgx1v.topology" >"$work/alone.topology"
expect "no adapters for --adapters" "DGX-1 V100 has no network adapter that each of its GPUs reaches" \
    "$tool/hetcoll_sim" --topology "$work/alone.topology" --bytes 64M --adapters
expect "nor on several nodes" "on 2 nodes the adapters carry what goes between them" \
    "$tool/hetcoll_sim" --topology "$machines/dgx1v.topology" --nodes 2 --bytes 64M --adapters
expect "JSON on stdout, the table on stderr" '^{"\$schema"' sh -c "
    '$tool/hetcoll_sim' --topology '$machines/dgx2.topology' --bytes 8,1M --json - 2>'$work/table' |
        python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin), separators=(\",\", \":\")))'
    grep -q '^ *1048576' '$work/table'"
"$tool/hetcoll_sim" --topology "$machines/netreduce6.cluster" --bytes 8,1M --algorithm in_network,hierarchical,ring,host \
    --json "$work/sim.json" >"$work/out" 2>&1 &&
    python3 "$HETCOLL_SRCDIR/tools/schema_check.py" "$HETCOLL_SRCDIR/tools/schema" "$work/sim.json" >"$work/out" 2>&1
verdict $? 'JSON as the schema says'
expect "measurements on stdout, the table on stderr" '^hetcoll measurements' sh -c "
    '$tool/hetcoll_sim' --topology '$machines/dgx2.topology' --bytes 1M --algorithm all --measurements - 2>'$work/table' |
        head -n 1
    grep -q '^ *1048576' '$work/table'"
"$tool/hetcoll_sim" --topology "$machines/dgx2.topology" -b 8 -e 64K -f 16 >"$work/out" 2>&1
[ "$(sed -n 's/^ *\([0-9][0-9]*\) .*/\1/p' "$work/out" | tr '\n' ' ')" = '8 128 2048 32768 ' ]
verdict $? "sizes as nccl-tests has them"
"$tool/hetcoll_sim" --topology "$machines/dgx2.topology" --bytes 8:64 >"$work/out" 2>&1
[ "$(sed -n 's/^ *\([0-9][0-9]*\) .*/\1/p' "$work/out" | tr '\n' ' ')" = '8 16 32 64 ' ]
verdict $? "sizes that double"
expect "a time budget, the first result" "^ *8 ring " "$tool/hetcoll_sim" --topology "$machines/awan64.cluster" \
    --nodes 8 --bytes 8,4G --chunk 4K --algorithm ring,recursive_doubling --budget 3 --json "$work/budget.json"
grep -q '^# --budget is used up: [1-3] simulations* .* left out$' "$work/out" && grep -q '"left out for --budget": "[1-3]"' "$work/budget.json"
verdict $? "says what there was no time for"
expect "a budget that is too short" "nothing was simulated: --budget is too short for the first one" \
    "$tool/hetcoll_sim" --topology "$machines/awan64.cluster" --nodes 64 --bytes 4G --chunk 4K --algorithm ring --budget 0.1
expect "how far it is" "hetcoll_sim: job 2 of 2: 16 ranks, 1048576 bytes by auto" \
    "$tool/hetcoll_sim" --topology "$machines/dgx2.topology" --bytes 8,1M --progress
expect "no file for JSON" "/no/file cannot be written" \
    "$tool/hetcoll_sim" --topology "$machines/dgx2.topology" --bytes 8 --json /no/file

if [ -x "$tool/hetcoll_tune" ]; then
    expect "a table from a simulation" "wrote .*table.json: .* rules for paper" \
        "$tool/hetcoll_tune" --simulate "$machines/awan64.cluster" --nodes 2,8 --sizes 8,4K,64K,1M,16M --machine paper \
        --hetcoll-sim "$tool/hetcoll_sim" --output "$work/table.json"
    expect "is read and chosen from" "the rule in $work/table.json:[0-9]*, bytes .* machine paper" \
        "$tool/hetcoll_info" --explain --bytes 16M --nodes 8 --ranks 8 --topology "$machines/p100.topology" \
        --table "$work/table.json"
    expect "is simulated by" " [a-z_]* *direct " \
        "$tool/hetcoll_sim" --topology "$machines/awan64.cluster" --nodes 8 --bytes 16M --table "$work/table.json"
    expect "is not this machine's" "give --output FILE" \
        "$tool/hetcoll_tune" --simulate "$machines/awan64.cluster" --hetcoll-sim "$tool/hetcoll_sim"
    expect "without hetcoll_sim" "is hetcoll_sim installed" \
        "$tool/hetcoll_tune" --simulate "$machines/awan64.cluster" --hetcoll-sim "$work/nowhere" --output "$work/t.json"
fi

sum_up
