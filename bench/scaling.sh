#!/bin/sh
# scaling.sh [HETCOLL_SIM] [FOLDER]: the simulations of docs/scaling.md, into bench/results/sim_*.{txt,json}. FOLDER:
# of the cluster files. Some minutes of a processor, one simulation at a time.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
sim=${1:-hetcoll_sim}
machines=${2:-$here/../topology/machines}
results=$here/results

# run NAME CLUSTER NODES BYTES ALGORITHMS
run()
{
    $sim --topology "$machines/$2" --nodes "$3" --bytes "$4" --algorithm "$5" --json "$results/sim_$1.json" |
        sed "s|$machines/||" >"$results/sim_$1.txt"
    sed -i "s|$machines/||" "$results/sim_$1.json"
}

run boxes dgx1v.topology 1 8,64M auto
run dgxh100 dgxh100x512.cluster 1,2,8 8,1M,64M auto,rabenseifner,host,two_shot
run dgxh100_ring dgxh100x512.cluster 1,2,8,32 8,1M ring,hierarchical
run dgxh100_1024 dgxh100x512.cluster 128 8,1M auto,recursive_doubling,rabenseifner,hierarchical
run dgxh100_4096 dgxh100x512.cluster 512 8,64K auto,recursive_doubling,rabenseifner,hierarchical
run awan64 awan64.cluster 2,4,8,16,32,64 8,64K,64M auto,ring,recursive_doubling,rabenseifner,host
run netreduce netreduce.cluster 6,16,64 8,100M auto,in_network
run netreduce512 netreduce.cluster 512 8,4M auto,in_network
run hetpipe hetpipe.cluster 4 8,64M auto,ring
run fragments fragments.cluster 2 8,64M auto,ring,hierarchical
