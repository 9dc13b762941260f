#!/bin/sh
# scaling.sh [HETCOLL_SIM] [FOLDER] [NAME...]: runs the simulations of docs/internals/scaling.md, writes
# bench/results/sim_NAME.{txt,json}, and draws the page's pictures if matplotlib is there. FOLDER has the cluster files.
# Takes more than an hour of a processor, one simulation at a time. With names it runs only these, and draws nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sim=${1:-hetcoll_sim}
machines=${2:-$here/../topology/machines}
results=$here/results
shift $(($# < 2 ? $# : 2))
names=$*
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

wanted()
{
    case " $names " in
    "  " | *" $1 "*) ;;
    *) false ;;
    esac
}

# run NAME CLUSTER NODES BYTES ALGORITHMS [OPTION...]
run()
{
    name=$1 cluster=$2 nodes=$3 bytes=$4 algorithms=$5
    shift 5
    wanted "$name" || return 0
    [ -f "$cluster" ] || cluster=$machines/$cluster
    $sim --topology "$cluster" --nodes "$nodes" --bytes "$bytes" --algorithm "$algorithms" \
        --json "$results/sim_$name.json" "$@" | sed "s|${cluster%/*}/||" >"$results/sim_$name.txt"
    sed -i "s|${cluster%/*}/||" "$results/sim_$name.json"
}

# run_each NAME "TOPOLOGY..." NODES BYTES ALGORITHMS: one file of what run says of each.
run_each()
{
    wanted "$1" || return 0
    one=$1 topologies=$2
    shift 2
    : >"$work/all.txt"
    for topology in $topologies; do
        run "$one" "$topology.topology" "$@"
        cat "$results/sim_$one.txt" >>"$work/all.txt"
    done
    rm "$results/sim_$one.json"
    mv "$work/all.txt" "$results/sim_$one.txt"
}

# hetcoll's choice on every shipped platform, to compare with the bound.
run_each boxes "dgx1p dgx1v dgx1v-01234 dgx2 dgxa100 dgxh100 pcie8" 1 8,64M,256M auto
run pcie8x2 pcie8.topology 2 8,64M,256M auto
run dgx1vx128 dgx1vx128.cluster 2,8,32 8,64M,256M auto
run dgx1vx128_1024 dgx1vx128.cluster 128 8,64M auto       # eight minutes
run dgx1vx128_1024_256M dgx1vx128.cluster 128 256M auto   # twenty minutes
run netreduce6 netreduce6.cluster 6 8,64M,256M auto,in_network
run oversubscribed oversubscribed.cluster 64,512 8,64M,256M auto
run hetpipe hetpipe.cluster 4 8,64M,256M auto,ring,hierarchical
run fragments fragments.cluster 2 8,64M,256M auto,ring
sed 's/ adapters mlx5.*//' "$machines/fragments.cluster" >"$work/fragments-unbound.cluster"
cp "$machines"/dgx1v*.topology "$work"
run fragments_unbound "$work/fragments-unbound.cluster" 2 64M,256M auto

# Trees and rings through NVLinks on the full machines, for docs/internals/trees.md.
run_each trees "dgx1v dgx1p" 1 4M,16M,64M,256M auto,tree,ring
# Trees on fragments that leave adapters idle, without and with a share through these.
fragments="dgx1v-014 dgx1v-0124 dgx1v-01234"
run_each no_adapters "$fragments" 1 4M,16M,64M,256M auto
run_each adapters "$fragments" 1 4M,16M,64M,256M auto --adapters

# Weak scaling, every algorithm.
every=ring,recursive_doubling,rabenseifner,hierarchical,ordered,in_network,host
run dgxh100 dgxh100x512.cluster 1,2,8 8,1M,64M auto,two_shot,$every --window 8
run dgxh100_256M dgxh100x512.cluster 2,8,32,128 256M auto
run dgxh100_256 dgxh100x512.cluster 32 8,1M auto,$every --window 8
run dgxh100_256_64M dgxh100x512.cluster 32 64M auto,rabenseifner,in_network --window 8
run dgxh100_1024 dgxh100x512.cluster 128 8,1M auto,$every --window 8
run dgxh100_1024_64M dgxh100x512.cluster 128 64M auto
run dgxh100_4096_8B dgxh100x512.cluster 512 8 auto,$every --window 8
run dgxh100_4096 dgxh100x512.cluster 512 1M auto,recursive_doubling,rabenseifner,hierarchical,ordered,in_network --window 8
run awan64 awan64.cluster 2,4,8,16,32,64 8,64K,64M auto,ring,recursive_doubling,rabenseifner,host
run awan64_24 awan64.cluster 24 16M auto,ring,rabenseifner
run netreduce netreduce.cluster 6,16,64 8,100M auto,ring,in_network
run netreduce512 netreduce.cluster 512 8,4M,64M,100M auto,in_network
run netreduce512_w8 netreduce.cluster 64,512 100M in_network --window 8

[ -z "$names" ] || exit 0

# A flat ring of 4,096 ranks has 33 million messages, so its closed form stands in. A part passes eight ranks of each
# node, in seven steps on the node and one between two nodes, each with the part's bytes. The ranks meet before and
# after.
python3 - "$results/sim_dgxh100_1024.json" "$results/sim_dgxh100_ring.json" <<'P'
import json, math, sys
simulated = json.load(open(sys.argv[1]))


def ring_us(row, ranks):
    part = 4 * math.ceil(row["bytes"] / 4 / ranks)
    near, far = 10 + part / 450e3, 13 + part / 48e3
    reduction = 3 * part / 3350e3
    meetings = 2 * (2 * 1 + 2 * math.log2(ranks / 8))
    return 2 * (ranks - 1) * (7 * near + far) / 8 + (ranks - 1) * reduction + meetings


row = next(r for r in simulated["results"] if r["asked"] == "ring" and r["bytes"] == 1 << 20)
check = ring_us(row, row["ranks"])
print(f"ring of {row['ranks']} ranks, 1 MiB: simulated {row['median_us']:.1f} us, closed form {check:.1f} us")
for key in ("$schema", "schema", "tool"):  # hetcoll_sim has not written this
    simulated.pop(key, None)
simulated["result"] = "closed form of the ring, not simulated"
simulated["results"] = [{"ranks": 4096, "nodes": 512, "bytes": row["bytes"], "asked": "ring", "algorithm": "ring",
                         "path": "closed form", "median_us": round(ring_us(row, 4096), 1), "bound_us": 32.0}]
json.dump(simulated, open(sys.argv[2], "w"), indent=2)
P

if python3 -c 'import matplotlib' 2>/dev/null; then
    python3 "$here/plot.py" --title "DGX H100" --output "$here/../docs/pictures/scaling-dgxh100" --scaling \
        "$results"/sim_dgxh100.json "$results"/sim_dgxh100_256.json "$results"/sim_dgxh100_*_64M.json \
        "$results"/sim_dgxh100_1024.json "$results"/sim_dgxh100_4096*.json "$results"/sim_dgxh100_ring.json
    python3 "$here/plot.py" --title "64 nodes with one P100" --output "$here/../docs/pictures/scaling-awan64" --scaling \
        "$results/sim_awan64.json"
fi
