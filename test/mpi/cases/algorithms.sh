#!/bin/bash
# algorithms.sh: every algorithm, forced, on GPUs that ranks share or have for themselves.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# Every algorithm, forced: it serves the calls itself.
# Communicators of some of the ranks may lack what it needs, which one message says.
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
# Ranks that share one GPU.
case_ 2 ob1 "$(with one_shot)" algorithms one_shot
case_ 3 ucx "$(with one_shot)" algorithms one_shot
case_ 7 ob1 "$(with one_shot)" algorithms one_shot
case_ 2 ob1 "$(with two_shot)" algorithms two_shot
case_ 5 ob1 "$(with two_shot)" algorithms two_shot
case_ 2 ob1 "$(with leader)" algorithms leader
case_ 3 ob1 "$(with leader)" algorithms leader
case_ 8 ob1 "$(with leader)" algorithms leader
case_ 3 ob1 "$(with copy_in)" algorithms copy_in
case_ 4 ucx "$(with copy_in)" algorithms copy_in
case_ 8 ob1 "$(with copy_in)" algorithms copy_in
case_ 3 ob1 "$(with host)" algorithms host
case_ 7 ob1 "$(with host)" algorithms host
case_ 2 ob1 "$(with ring)" algorithms ring
case_ 8 ucx "$(with ring)" algorithms ring
case_ 5 ob1 "$(with rabenseifner)" algorithms rabenseifner
case_ 5 ob1 "$(with recursive_doubling)" algorithms recursive_doubling
case_ 2 ob1 "$(with hierarchical)" algorithms hierarchical
case_ 5 ucx "$(with hierarchical)" algorithms hierarchical
# One GPU a rank.
for algorithm in one_shot two_shot leader ring rabenseifner; do
    EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with $algorithm)" algorithms $algorithm
done
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with copy_in)" algorithms copy_in
EMU_NUM_DEVICES=7 case_ 7 ob1 "$(with two_shot)" algorithms two_shot
EMU_NUM_DEVICES=5 case_ 5 ucx "$(with ring)" algorithms ring
EMU_NUM_DEVICES=2 case_ 2 ucx "$(with rabenseifner)" algorithms rabenseifner
# Two ranks a GPU.
for algorithm in hierarchical two_shot one_shot; do
    EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with $algorithm)" algorithms $algorithm
done
EMU_NUM_DEVICES=3 case_ 7 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=2 case_ 4 ob1 "$forced" algorithms any
# GPUs joined pair by pair, as a scheduler leaves them: trees. Two ranks on one of the GPUs too.
EMU_LINKS=$machines/dgx1v.topology:0,1,2,4 case_ 4 ob1 "$(with tree)" algorithms tree
EMU_LINKS=$machines/dgx1v.topology:0,3,4 case_ 3 ucx "$(with tree)" algorithms tree
EMU_LINKS=$machines/dgx1v.topology:0,1,4 case_ 4 ob1 "$(with tree)" algorithms tree
EMU_LINKS=$machines/dgx1v.topology case_ 8 ob1 "$(with tree)" algorithms tree
EMU_LINKS=$machines/dgx1v.topology:0,1,2,4 case_ 4 ob1 "$forced" algorithms any
# Rings through NVLinks, several at the same time; two ranks on one of the GPUs too.
EMU_LINKS=$machines/dgx1v.topology case_ 8 ob1 "$(with ring)" algorithms ring
EMU_LINKS=$machines/dgx1v.topology:0,1,2 case_ 4 ucx "$(with ring)" algorithms ring
# Kernels touch what they declare, memory lies where it will, work is late.
EMU_NUM_DEVICES=2 EMU_CHECK_FOOTPRINT=1 case_ 2 ob1 "$(with two_shot)" algorithms two_shot
EMU_LINKS=$machines/dgx1v.topology:0,1,4 EMU_CHECK_FOOTPRINT=1 \
    case_ 3 ob1 "$(with tree)" algorithms tree
EMU_NUM_DEVICES=3 EMU_VA=same case_ 3 ob1 "$(with two_shot)" algorithms two_shot
EMU_VA=same case_ 4 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_DELAY_US=30 EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with one_shot)" algorithms one_shot
EMU_DELAY_US=30 EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_DELAY_US=30 EMU_LINKS=$machines/dgx1v.topology:0,3,4 case_ 3 ob1 "$(with tree)" algorithms tree
EMU_DELAY_US=30 EMU_LINKS=$machines/dgx1p.topology:0,1,2,3 case_ 4 ob1 "$(with ring)" algorithms ring
EMU_DELAY_US=30 case_ 4 ob1 "$(with copy_in)" algorithms copy_in
# Every rank sees one device alone, as number 0; instances of a GPU are devices without peers.
wrapper="$here/on_device.sh 3"
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" algorithms two_shot
EMU_NUM_DEVICES=3 case_ 5 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=3 case_ 3 ucx "$(with two_shot)" counts two_shot two_shot
wrapper="$here/on_device.sh 2"
also_expected='hetcoll: some GPUs of this node do not share memory|hetcoll: coll_hetcoll_algorithm'
EMU_MIG=2 case_ 2 ob1 "$forced" algorithms any
EMU_MIG=2 case_ 4 ob1 "$(with hierarchical)" algorithms hierarchical
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
wrapper=''
# Along the chain of the ranks.
case_ 3 ob1 "$(with ordered)" algorithms ordered
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with ordered)" algorithms ordered
EMU_NUM_DEVICES=2 case_ 5 ucx "$(with ordered)" algorithms ordered

# Memory of other kinds under the algorithms that map it.
for algorithm in two_shot one_shot leader ring; do
    case_ 2 ob1 "$(with $algorithm)" other_memory
done
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" other_memory
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" other_memory
EMU_ID_STAYS=1 EMU_NUM_DEVICES=2 case_ 2 ob1 "$(with two_shot)" other_memory

# A job chooses by prices what hetcoll_info says, though each rank has priced some sizes only: on links, where
# ranks share a GPU, where some reduce host memory, with shares, with aggregators behind a slow network.
export HETCOLL_BUILDDIR=$build
for used in dgx1v.topology:0,1,2,4 pcie8.topology:0,1,2,3,4,5,6,7 dgxa100.topology:0,1,2; do
    ranks=$(echo "$used" | tr , '\n' | grep -c .)
    EMU_LINKS=$machines/$used case_ "$ranks" ob1 \
        "$forced --mca coll_hetcoll_topology_file $machines/$used" explained "$machines/$used" 1
done
used=dgx1v.topology:0,1,2,4
links="--mca coll_hetcoll_topology_file $machines/$used"
EMU_LINKS=$machines/$used nodes_ 0,0,0,0,1,1,1,1 ob1 "$forced $links" explained "$machines/$used" 2
EMU_LINKS=$machines/$used case_ 4 ob1 "$forced $links" explained "$machines/$used" 1 --mixed
EMU_LINKS=$machines/$used nodes_ 0,0,1,1,2,2 ob1 "$forced $links" explained "$machines/$used" 3 --mixed
used=dgx1v.topology:0
links="--mca coll_hetcoll_topology_file $machines/$used"
EMU_LINKS=$machines/$used case_ 3 ob1 "$forced $links" explained "$machines/$used" 1 --ranks-per-gpu 3
EMU_LINKS=$machines/$used nodes_ 0,0,1,1 ob1 "$forced $links" explained "$machines/$used" 2 --ranks-per-gpu 2
# Racks of three nodes with few links to each other, which change what is chosen.
used=v100-100gbe.topology
racks='--mca coll_hetcoll_rack_nodes 3 --mca coll_hetcoll_rack_gbps 1'
EMU_LINKS=$machines/$used nodes_ 0,1,2,3,4,5 ob1 "$forced --mca coll_hetcoll_topology_file $machines/$used $racks" \
    explained "$machines/$used" 6 --rack-nodes 3 --rack-gbps 1
used=dgxa100.topology:0,1,2,3
links="--mca coll_hetcoll_topology_file $machines/$used"
EMU_LINKS=$machines/$used case_ 4 ob1 "$forced $links --mca coll_hetcoll_shares 1,3,3,3" \
    explained "$machines/$used" 1 --shares 1,3,3,3

end_cases
