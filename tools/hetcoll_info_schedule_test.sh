#!/bin/sh
# The output and the proofs of hetcoll_info schedule, and its errors about arguments that it cannot
# follow.
set -u
. "$HETCOLL_SRCDIR/tools/info_says.sh"

sum='steps, and every rank ends with the same bits of the sum'

# Every algorithm that has steps, on ranks that are a power of two and not.
for ranks in 1 4 7; do
    for algorithm in recursive_doubling rabenseifner ring radix3 radix4 radix8 recursive_multiplying; do
        says 0 "$sum" --schedule $algorithm --ranks $ranks
    done
done
says 0 "$sum, added in the order of the ranks" --schedule ordered --ranks 5
says 0 'from node to node' --schedule ordered --ranks 16 --nodes 2 --topology "$machines/dgxh100.topology" --bytes 64M
says 0 "$sum" --schedule tree --ranks 5 --topology "$machines/dgx1v-01234.topology"
says 0 'between nodes, 2 segments' --schedule hierarchical --ranks 5 --nodes 2
says 0 'between nodes, 8 segments' --schedule hierarchical --ranks 6 --nodes 2 --ranks-per-gpu 2 --bytes 8M
says 0 'over trees on them' --schedule hierarchical --ranks 16 --nodes 2 --topology "$machines/dgx1v.topology" --bytes 16M
says 0 'slices by flow, ' --schedule hierarchical --ranks 6 --nodes 2 --topology "$machines/dgx1v.topology:0,1,2" --bytes 64M
says 0 '1 tree, 7 of 64 parts through host memory, 8 through adapters' --schedule tree --ranks 3 --bytes 64M --adapters \
    --topology "$machines/dgx1v-014.topology"
says 0 'racks first, 6 ranks a rack' --schedule rabenseifner --ranks 12 --nodes 4 --rack-nodes 2 --rack-gbps 1 --bytes 64M
says 0 'racks first, 6 nodes a rack' --schedule hierarchical --ranks 24 --nodes 12 --rack-nodes 6 --rack-gbps 1 --bytes 4M \
    --topology "$machines/dgxh100.topology"
says 0 'added in the order of the ranks' --schedule in_network --ranks 3 --nodes 3 --aggregators 1
says 0 'aggregator 10: ' --schedule in_network --ranks 8 --nodes 4 --aggregators 2
says 0 'shares 614,205,205,0 of 1024, 2 segments' --schedule weighted --ranks 4 --shares 3,1,1,0
says 0 'shares 1,1,1 of 3, 16 segments' --schedule weighted --ranks 3 --bytes 64M

# The halves.
for way in pipeline direct; do
    says 0 'every rank ends with its share of the sum' --schedule $way --collective reduce_scatter --ranks 5
    says 0 'every rank ends with the shares of all' --schedule $way --collective allgather --ranks 5
done
for way in pipeline direct binomial trees; do
    set -- --schedule $way --ranks 3 --root 2 --topology "$machines/dgx1v-014.topology"
    says 0 'every rank ends with the vector of rank 2' "$@" --collective bcast
    says 0 'rank 2 ends with the sum' "$@" --collective reduce
done

# --rank prints the steps of one rank, and the proof is of all.
says 0 'proved: no race and no deadlock in all 24 steps' --schedule ring --ranks 3 --rank 1
says 0 'rank 1: 3 blocks, 8 steps' --schedule ring --ranks 3 --rank 1
! grep -q '^rank 0:' "$work/out"
verdict $? '--rank 1 prints no other rank'

# Requests that it refuses.
says 2 "'rings' is no schedule for allreduce: write one of recursive_doubling, " --schedule rings --ranks 4
says 2 'for bcast: write one of pipeline, direct, binomial, trees' --schedule ring --collective bcast --ranks 4
says 2 "--collective: 'alltoall' is none of allreduce, bcast, " --schedule ring --collective alltoall --ranks 4
says 2 'one_shot has no steps: it is one kernel' --schedule one_shot --ranks 4
says 2 'how many ranks?' --schedule ring
says 1 '--rank 4 does not take part: 4 participants are 0 to 3' --schedule ring --ranks 4 --rank 4
says 2 '--root 4 is no rank' --schedule direct --collective bcast --ranks 4 --root 4
says 2 '1025 ranks are too many for a proof: write 1024 at most' --schedule ring --ranks 1025
says 1 'name a topology that has them' --schedule tree --ranks 4
says 1 'leave out --nodes' --schedule tree --ranks 4 --nodes 2 --topology "$machines/dgx1v.topology"
says 1 'has no packed trees for 8 GPUs' --schedule tree --ranks 8 --topology "$machines/dgxa100.topology"
says 1 'write --nodes, or --ranks-per-gpu' --schedule hierarchical --ranks 4
says 1 'write --aggregators N' --schedule in_network --ranks 4
says 1 'weighted needs shares of these ranks, and ' --schedule weighted --ranks 4 --shares 1,2
says 2 'is for one size of the vector' --schedule ring --ranks 4 --bytes 1M,2M

sum_up
