#!/bin/sh
# scaling.sh [HETCOLL_SIM] [FOLDER]: the simulations of docs/scaling.md, into bench/results/sim_*.{txt,json}. FOLDER:
# of the cluster files. Half an hour of a processor, one simulation at a time.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sim=${1:-hetcoll_sim}
machines=${2:-$here/../topology/machines}
results=$here/results

# run NAME CLUSTER NODES BYTES ALGORITHMS [OPTION...]
run()
{
    name=$1 cluster=$2 nodes=$3 bytes=$4 algorithms=$5
    shift 5
    $sim --topology "$machines/$cluster" --nodes "$nodes" --bytes "$bytes" --algorithm "$algorithms" \
        --json "$results/sim_$name.json" "$@" | sed "s|$machines/||" >"$results/sim_$name.txt"
    sed -i "s|$machines/||" "$results/sim_$name.json"
}

run dgxh100 dgxh100x512.cluster 1,2,8,32,128 8,64M auto,ring,recursive_doubling,rabenseifner,hierarchical,host
run dgxh100_4096 dgxh100x512.cluster 512 8,1M auto,recursive_doubling,rabenseifner,hierarchical
run awan64 awan64.cluster 2,4,8,16,32,64 8,64K,64M auto,ring,recursive_doubling,rabenseifner,host
run netreduce netreduce.cluster 6,16,64,512 8,100M auto,in_network
run oversubscribed oversubscribed.cluster 16,64,256 64M auto,ring,rabenseifner
