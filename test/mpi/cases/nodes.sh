#!/bin/bash
# nodes.sh: GPUs that do not reach each other, and several nodes on this machine.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# Some pairs of GPUs, or all, do not reach each other: messages for these.
also_expected='hetcoll: (some GPUs of this node do not share memory|coll_hetcoll_algorithm [a-z_]* cannot run on a)'
EMU_NUM_DEVICES=4 EMU_NO_PEER=0-1,2-3 case_ 4 ob1 "$(with ring)" algorithms ring
EMU_NUM_DEVICES=4 EMU_NO_PEER=0-3 case_ 4 ucx "$(with rabenseifner)" algorithms rabenseifner
EMU_NUM_DEVICES=2 EMU_NO_PEER=all case_ 4 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=3 EMU_NO_PEER=all case_ 3 ob1 "$forced" algorithms any
EMU_NUM_DEVICES=3 EMU_NO_PEER=0-2 other_algorithm=any case_ 3 ob1 "$(with two_shot)" algorithms any
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
case_ 4 ob1 "$(with ring) --mca coll_hetcoll_ipc never" algorithms ring
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical) --mca coll_hetcoll_ipc never" algorithms hierarchical

# Several nodes on this machine, by words: 1+1, 1+2, 1+3, 3+2, 2+2+1, 1+7 ranks, next to each other
# or not.
nodes_ 0,1 ob1 "$forced" algorithms any
nodes_ 0,1,1 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=3 nodes_ 0,1,1,1 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=2 nodes_ 0,1,0,1,0 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,2 ucx "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=4 nodes_ 0,1,1,1,1,1,1,1 ob1 "$(with hierarchical)" algorithms hierarchical
# Over trees on the nodes: GPUs 1 and 4 have no NVLink between them.
EMU_LINKS=$machines/dgx1v.topology:0,1,4 nodes_ 0,0,0,1,1,1 ob1 "$(with hierarchical)" algorithms hierarchical
# In eight segments, of which two leave a node at a time.
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$(with hierarchical)" algorithms hierarchical 16777217
EMU_LINKS=$machines/dgx1v.topology:0,1,4 nodes_ 0,0,0,1,1,1 ob1 "$(with hierarchical)" algorithms hierarchical 2200000
# Nodes of one GPU each.
nodes_ 0,1,2,3 ob1 "$(with hierarchical)" algorithms hierarchical 2200000
nodes_ 0,1,2 ucx "$(with hierarchical)" algorithms hierarchical
nodes_ 0,0,1,1 ob1 "$(with ring)" algorithms ring
# In the order of the links: in next to the adapter at GPU 0, out next to the one at GPU 4.
EMU_LINKS=$machines/pcie8.topology:0,2,4,6 nodes_ 0,0,0,0,1,1,1,1 ob1 "$(with ring)" algorithms ring
# Slices by flow. GPUs 0 and 1 have the same adapter nearest: only one of them owns slices, unless its ranks
# are bound to others. On 3 + 5 GPUs as well, where ranks 3 to 7 have GPUs 3, 4, 0, 1 and 2.
used=$machines/dgx1v.topology:0,1,2
by_flow="$(with hierarchical) --mca coll_hetcoll_topology_file $used"
EMU_LINKS=$used nodes_ 0,0,0,1,1,1 ob1 "$by_flow" slices 1,0,1,1,0,1
wrapper="$here/on_nodes.sh 0,0,0,1,1,1 $here/on_adapters.sh mlx5_0:1,mlx5_2:1,mlx5_1:1,mlx5_0:1,mlx5_2:1,mlx5_1:1"
EMU_LINKS=$used case_ 6 ob1 "$by_flow" slices 5,4,5,5,4,5
EMU_LINKS=$used case_ 6 ob1 "$by_flow" algorithms hierarchical 2200000
wrapper=''
used=$machines/dgx1v.topology:0,1,2,3,4
EMU_LINKS=$used nodes_ 0,0,0,1,1,1,1,1 ob1 "$(with hierarchical) --mca coll_hetcoll_topology_file $used" \
    slices 1,0,1,0,0,1,0,1
nodes_ 1,0,1 ob1 "$(with host)" algorithms host
# Numbers of nodes that are no power of two, flat and between the nodes.
nodes_ 0,1,2 ob1 "$(with radix3)" algorithms radix3
nodes_ 0,1,2,3,4 ob1 "$(with rabenseifner)" algorithms rabenseifner
nodes_ 0,1,2,3,4,5 ob1 "$(with radix4)" algorithms radix4
nodes_ 0,1,2,3,4,5,6 ob1 "$(with radix8)" algorithms radix8
# Racks of three nodes first.
racks='--mca coll_hetcoll_rack_nodes 3 --mca coll_hetcoll_rack_gbps 1'
nodes_ 0,1,2,3,4,5 ob1 "$(with rabenseifner) $racks" algorithms rabenseifner 2200000
# Whole vectors of several chunks: in one round, and in another order than that of the nodes.
nodes_ 0,1,2,3 ob1 "$(with recursive_multiplying)" algorithms recursive_multiplying 2200000
nodes_ 0,0,1,2,1 ucx "$(with recursive_multiplying)" algorithms recursive_multiplying
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,2,2 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=2 nodes_ 0,0,0,1,1 ob1 "$forced" algorithms any
nodes_ 0,1,1 ob1 "$forced" mixed_memory
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,1 ob1 "$(with hierarchical)" other_memory

# And by namespaces: other host names, other shared memory, TCP in between.
if unshare --uts --mount --ipc --pid --fork --mount-proc true 2>/dev/null; then
    also_expected="$also_expected|hetcoll: ranks on one machine are in different containers"
    also_expected="$also_expected|plm:rsh: Warning: setpgid" # its race with the agent's own
    hosts_ 3 nodea:1,nodeb:2 ob1 "$(with hierarchical)" algorithms hierarchical
    EMU_NUM_DEVICES=2 hosts_ 5 nodea:3,nodeb:2 ob1 "$(with hierarchical)" algorithms hierarchical
    hosts_ 4 nodea:2,nodeb:2 ob1 "$forced" algorithms any
else
    skip_ 'hosts in namespaces: unshare does not work here'
fi

end_cases
