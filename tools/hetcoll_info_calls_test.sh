#!/bin/sh
# The output of hetcoll_info model, --explain and --fingerprint, and their errors about arguments and
# tables that they cannot follow.
set -u
. "$HETCOLL_SRCDIR/tools/info_says.sh"

cluster='--model --ranks-per-node 8 --nodes 8 --inter 12.5 --latency 5'
says 0 'for every size  if B_i/B_o >= 8: yes' $cluster --intra 100
says 0 'and otherwise below M* = 28000000 bytes' $cluster --intra 50
says 0 'from            1 bytes' $cluster --intra 50
says 0 'two_shot' --model --ranks-per-node 8 --intra 300 --latency 5 --bytes 1M
says 2 'needs --intra GB/s, --latency us' --model --ranks-per-node 8
says 2 'how many ranks?' --model --intra 100 --latency 5
says 2 '8 ranks cannot be on 16 nodes' --model --ranks 8 --nodes 16 --intra 1 --inter 1 --latency 1

call='--explain --bytes 4M --ranks 64 --nodes 8'
says 0 'served by  hierarchical' $call --topology "$machines/dgxa100.topology"
says 0 'links      unknown' $call
says 0 'between nodes, over trees on them' --explain --bytes 64M --ranks 16 --nodes 2 --topology "$machines/dgx1v.topology"
says 0 'served by  tree' --explain --bytes 4M --ranks 5 --topology "$machines/dgx1v-01234.topology"
fragment='--explain --bytes 64M --ranks 6 --nodes 2 --topology'
says 0 'slices by flow' $fragment "$machines/dgx1v.topology:0,1,2"
says 0 'slices     of a node with 3 GPUs: gpu0 1 of 2 by mlx5_0, gpu1 none, gpu2 1 of 2 by mlx5_1' \
    $fragment "$machines/dgx1v.topology:0,1,2"
says 0 'sends 24 GB/s, and 33.6 if UCX_NET_DEVICES is mlx5_0:1 for gpu0, mlx5_2:1 for gpu1, mlx5_1:1 for gpu2' \
    $fragment "$machines/dgx1v.topology:0,1,2"
says 0 'asked for, tree, cannot run here' $call --algorithm tree
says 0 'it is asked for' $call --algorithm ring
says 2 "--algorithm 'rings' is not one" $call --algorithm rings
says 2 'how large a vector?' --explain --ranks 4
says 0 'by the prices of 4M and 8M' $call
says 0 'a job stops pricing an algorithm that is clearly slower than another one at 4M or 8M,' $call \
    --topology "$machines/dgxa100.topology"
says 0 'served by' --explain --bytes 4M --ranks 4 --nodes 4 --reproducible --topology "$machines/v100-100gbe.topology"
! grep -q 'given up' "$work/out"
verdict $? 'and says nothing of it where no price is given up'

# Without a size: the algorithm of every region of ranks and sizes, as explain names it at both sides of each border.
"$info" explain --topology "$machines/dgxh100.topology" --nodes 3 >"$work/regions" 2>&1 &&
    [ "$(wc -L <"$work/regions")" -le 100 ] && [ "$(awk '$1 ~ /^[0-9]/' "$work/regions" | wc -l)" -eq 9 ]
verdict $? 'the table of regions has a row for 2 to 8 ranks, two and three nodes, and at most 100 columns'
says 0 ' 4      1  ' explain --topology "$machines/dgxh100.topology" --ranks 4
says 0 'DGX H100' explain --topology "$machines/dgxh100.topology:0,1" --nodes 2
says 0 'ordered' explain --topology "$machines/dgxh100.topology" --reproducible --ranks 16 --nodes 2
says 1 'one GPU has no other to reduce with' explain --topology "$machines/p100.topology"
says 1 'would take too long: at most 256 GPUs and 16384 ranks' explain --topology "$machines/dgxh100.topology" --nodes 4096
says 2 'write --bytes, for example --bytes 4M; ' explain --collective bcast --topology "$machines/dgxh100.topology"
says 2 'or only --topology for a table of all sizes' explain --nodes 2
"$info" explain --topology "$machines/dgxh100.topology" --nodes 2 --json >"$work/json.regions"
python3 - "$work/json.regions" "$info" explain --topology "$machines/dgxh100.topology" >"$work/out" 2>&1 <<'END'
import json, subprocess, sys
borders = 0
for row in json.load(open(sys.argv[1]))["regions"]:
    command = sys.argv[2:] + ["--json", "--ranks", str(row["ranks"]), "--nodes", str(row["nodes"])]
    regions = row["regions"]
    for before, after in zip(regions, regions[1:]):
        assert before["algorithm"] != after["algorithm"]
        sizes = f'{after["first_bytes"] - 1},{after["first_bytes"]}'
        found = json.loads(subprocess.run(command + ["--bytes", sizes], check=True, stdout=subprocess.PIPE).stdout)
        names = [one["served_by"]["algorithm"] for one in found["explain"]]
        assert names == [before["algorithm"], after["algorithm"]], (row["ranks"], sizes, names)
        borders += 1
assert borders >= 8, borders
END
verdict $? 'its borders are those of explain with sizes'
(cd "$work" && PYTHONDONTWRITEBYTECODE=1 python3 "$HETCOLL_SRCDIR/bench/draw_regions.py" "$info" "$work/regions.svg") >"$work/out" 2>&1 &&
    cmp "$work/regions.svg" "$HETCOLL_SRCDIR/docs/pictures/regions.svg" >>"$work/out" 2>&1
verdict $? 'docs/pictures/regions.svg is what bench/draw_regions.py draws: run it again where prices have changed'
says 1 'the topology has 8' --explain --bytes 4M --ranks 9 --topology "$machines/dgx1v.topology"

# A node of more GPUs than trees are packed for: rows of eight, each GPU joined to four others.
awk 'BEGIN {
    print "hetcoll topology 1\nmachine torus\ncpu cpu0"
    for (i = 0; i < 72; i++) printf "gpu gpu%d - model X\nlink gpu%d cpu0 pcie 1 32\n", i, i
    for (i = 0; i < 72; i++) printf "link gpu%d gpu%d nvlink 2 25\nlink gpu%d gpu%d nvlink 1 25\n",
        i, i - i % 8 + (i + 1) % 8, i, (i + 8) % 72
}' >"$work/torus"
for ranks in 65 72; do
    says 0 'tree                            - needs 3 to 64 GPUs' --explain --bytes 64K --ranks $ranks --topology "$work/torus"
done
says 0 'served by' --explain --bytes 64K --ranks 144 --nodes 2 --topology "$work/torus"
says 0 'torus: 72 gpu' --topology "$work/torus"
says 1 'torus has no packed trees for 72 GPUs: they need 3 to 64' --schedule tree --ranks 72 --topology "$work/torus"
says 0 'every rank ends with the same bits' --schedule hierarchical --ranks 144 --nodes 2 --topology "$work/torus"
if [ -x "$HETCOLL_BUILDDIR/hetcoll_sim" ]; then
    "$HETCOLL_BUILDDIR/hetcoll_sim" --topology "$work/torus" --bytes 64K --algorithm rabenseifner >"$work/out" 2>&1
    verdict $? 'hetcoll_sim of 72 GPUs'
fi

# A trial has found that ranks can send each other messages through adapters.
call="--explain --bytes 64M --ranks 3 --topology $machines/dgx1v-014.topology"
says 0 'served by  tree, 7 of 64 parts through host memory, 8 through adapters, chunks' $call --adapters
says 0 'served by  tree, 7 of 64 parts through host memory, chunks' $call
says 1 'on 2 nodes the adapters carry' --explain --bytes 64M --ranks 6 --nodes 2 --adapters \
    --topology "$machines/dgx1v-014.topology"
grep -v -e mlx5 -e net0 "$machines/dgx1v.topology" >"$work/alone.topology"
says 1 'has no network adapter that each' --explain --bytes 64M --ranks 4 --adapters --topology "$work/alone.topology"
says 1 "needs to know the machine's network adapters" --explain --bytes 64M --ranks 4 --adapters
says 2 '--adapters is for allreduce' $call --adapters --collective bcast
says 2 '--adapters is for hetcoll_info explain and schedule, not for topology' --topology "$machines/dgx1v.topology" --adapters

# Racks of nodes, as coll_hetcoll_rack_nodes says.
call="--explain --bytes 1M --ranks 48 --nodes 48 --topology $machines/v100-100gbe.topology"
says 0 'racks      of 12 nodes, each 18 GB/s to the others' $call --rack-nodes 12 --rack-gbps 18
says 0 ', racks first' $call --rack-nodes 12 --rack-gbps 18
says 0 'racks      of 12 nodes, each with as much to the others as its nodes send' $call --rack-nodes 12
says 2 '--rack-nodes' $call --rack-gbps 35
says 2 '--rack-nodes' $call --rack-nodes -1
says 2 '--rack-gbps' $call --rack-nodes 12 --rack-gbps 0.5
says 2 '--rack-nodes is for hetcoll_info explain and schedule' --fingerprint --rack-nodes 12

# The effect of coll_hetcoll_shares.
call='--explain --bytes 16M --ranks 8 --topology'
says 0 'shares     none: its links are equally fast' $call "$machines/dgxh100.topology" --shares auto
says 0 'shares     1,1,1,1,1,1,1,1, a vector at 257.1 GB/s' $call "$machines/dgxh100.topology" --shares auto \
    --algorithm weighted
says 0 'a vector at 150.1 GB' $call "$machines/dgxh100.topology" --shares 3,1,1,1,1,1,1,0
says 0 'shares     none: its ranks do not reach each other' $call "$machines/dgx1v.topology" --shares auto
says 0 'shares     none: it has a number of shares that is not' $call "$machines/dgxh100.topology" --shares 3,1,0
says 2 "'3,' is unknown" $call "$machines/dgxh100.topology" --shares 3,

# Who serves the other collectives.
call='--explain --bytes 4M --ranks 3 --collective'
says 0 'own schedule, trees: down' $call bcast --topology "$machines/dgx1v-014.topology"
says 0 'own schedule, trees: up' $call reduce --topology "$machines/dgx1v-014.topology"
says 0 'own schedule, pipeline: in chunks around' $call allgather --topology "$machines/dgx1v-014.topology"
says 0 'own schedule, direct' $call reduce_scatter --topology "$machines/dgxa100.topology"
says 0 'own schedule, pipeline: in chunks along' $call bcast --nodes 3 --topology "$machines/dgxa100.topology"
says 0 'hetcoll has no schedule for it' $call alltoallv
says 0 'there is no buffer' $call barrier
says 0 'less than 131072 bytes' --explain --bytes 131071 --ranks 3 --collective bcast
says 0 'served by  hetcoll' --explain --bytes 128K --ranks 3 --collective bcast
says 0 ', 1 rank on 1 node' --explain --bytes 4M --ranks 1 --collective bcast
says 0 'nobody to share' --explain --bytes 4M --ranks 1 --collective bcast
says 0 'served by  tree' --explain --bytes 16M --ranks 3 --collective allreduce --topology "$machines/dgx1v-014.topology"
says 2 "--collective: 'broadcast' is none of" $call broadcast
call='--explain --bytes 4M --ranks 64 --nodes 8'

cat >"$work/table.json" <<'END'
{"rule_file_version": 3, "module": "hetcoll",
 "machines": [{"name": "box", "fingerprint": {"gpu": "A100"}}],
 "collectives": {"allreduce": [
   {"machine": "box", "comm_size_min": 33, "comm_size_max": 128, "rules": [
     {"msg_size_min": 65536, "msg_size_max": "inf", "alg": "ring", "chunk_bytes": 131072}]}]}}
END
says 0 'table.json:5, bytes 65536 to inf, ranks 33 to 128, machine box' $call --table "$work/table.json"
says 0 'chunks of 131072 bytes' $call --table "$work/table.json"
says 0 'the table has no rule for the call' --explain --bytes 4M --ranks 4 --table "$work/table.json"
long=$work/$(printf '%0200d/%0200d/%0200d' 1 2 3)
mkdir -p "$long" && cp "$work/table.json" "$long/table.json"
says 0 "$long/table.json:5, bytes 65536 to inf, ranks 33 to 128, machine box" $call --table "$long/table.json"
# A job takes the rules of its own machine alone.
says 0 'table      rules for box, which a job takes on that machine alone' $call --table "$work/table.json"
other="$call --topology $machines/dgxa100.topology --table $work/table.json"
says 0 'because    the cheapest one, a job ignores the table' $other
says 0 "box: gpu is 'A100-SXM4-40GB' here, not 'A100'" $other
says 0 'table.json:5, ' $other --machine box
says 0 'table      rules for box, as --machine says; a job on such a machine ignores the table: ' $other --machine box
sed 's/"A100"/"A100-SXM4-40GB"/' "$work/table.json" >"$work/own.json"
says 0 'own.json:5, ' $call --topology "$machines/dgxa100.topology" --table "$work/own.json"
! grep -q '^table ' "$work/out"
verdict $? 'and there is nothing to say of them'
if [ -x "$HETCOLL_BUILDDIR/hetcoll_sim" ]; then
    "$HETCOLL_BUILDDIR/hetcoll_sim" --topology "$machines/dgxa100.topology" --nodes 5 --bytes 64K --table "$work/table.json" \
        >"$work/out" 2>"$work/err" && [ "$(grep -c 'table.json: a job ignores it: ' "$work/err")" -eq 1 ]
    verdict $? 'hetcoll_sim says that as well'
fi
says 0 ' ring*' explain --topology "$machines/dgxa100.topology" --table "$work/own.json" --ranks 64 --nodes 8
says 0 '* by a rule of the table, else by price' explain --topology "$machines/dgxa100.topology" --table "$work/own.json" --ranks 64 --nodes 8
says 0 'table      a job ignores it: ' explain --topology "$machines/dgxa100.topology" --table "$work/table.json"
says 1 "no machine 'other' in it: say one of box" $call --table "$work/table.json" --machine other
sed 's/"ring"/"rings"/' "$work/table.json" >"$work/broken.json"
says 1 "broken.json:5: 'alg': unknown algorithm 'rings'" $call --table "$work/broken.json"

says 0 'links nvswitch x12' --fingerprint --topology "$machines/dgxa100.topology:0,3"
says 0 'gpu Tesla-V100-SXM2-32GB' --fingerprint --topology "$machines/dgx1v.topology"

# JSON, as the installed schema has it.
json=$work/json
writes "$json.1" --explain --bytes 8,4M,64M --ranks 64 --nodes 8 --topology "$machines/dgxa100.topology" --json "$json.1"
writes "$json.2" --explain --bytes 4M --ranks 64 --nodes 8 --table "$work/table.json" --json "$json.2"
writes "$json.3" --explain --bytes 4M --ranks 3 --collective bcast --json "$json.3"
writes "$json.4" --topology "$machines/dgx1v.topology" --json "$json.4"
writes "$json.5" --fingerprint --topology "$machines/dgx1v.topology" --json "$json.5"
says 0 '"schema": 1' --fingerprint --topology "$machines/dgx1v.topology" --json -
says 0 '"source": "table"' --explain --bytes 4M --ranks 64 --nodes 8 --table "$work/table.json" --json
python3 "$HETCOLL_SRCDIR/tools/schema_check.py" "$HETCOLL_SRCDIR/tools/schema" "$json".[1-5] "$work/json.regions" >"$work/out" 2>&1
verdict $? 'the JSON is what its schema says'
says 2 '--json is for hetcoll_info topology, ' --model --json --ranks 4 --intra 1 --latency 1
says 2 '--json prints something else than --dot, --svg' --topology "$machines/dgx1v.topology" --svg --json
says 1 '/no/file cannot be written (No such file or directory)' --topology "$machines/dgx1v.topology" --json /no/file

sum_up
