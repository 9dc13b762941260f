# Cases of run.sh: who serves a call, by which algorithm, on which machines and nodes.
# shellcheck shell=bash disable=SC2154,SC2034

# The literal list that users type, and the other ways to name or not to name hetcoll.
case_ 1 ob1 "$forced" all_collectives
case_ 2 ob1 "$forced" all_collectives
case_ 3 ob1 "$forced" all_collectives
case_ 4 ucx "$forced" all_collectives
case_ 5 ob1 "$forced" all_collectives
case_ 4 ob1 "--mca coll ^hetcoll" all_collectives
case_ 4 ob1 "--mca coll hetcoll,basic,libnbc,inter,self,tuned" all_collectives
case_ 4 ob1 "" all_collectives
case_ 3 ucx "" all_collectives
case_ 4 ob1 "$forced --mca coll_hetcoll_enable 0" all_collectives
LD_LIBRARY_PATH='' case_ 4 ob1 "$forced" all_collectives

for ranks in 1 2 3 4 5 7 8; do
    case_ $ranks ob1 "$forced" device_allreduce
done
case_ 2 ucx "$forced" device_allreduce
case_ 4 ucx "$forced" device_allreduce
case_ 7 ucx "$forced" device_allreduce
case_ 4 ob1 "$forced --mca coll_hetcoll_chunk_bytes 4096" device_allreduce
EMU_NUM_DEVICES=3 case_ 4 ob1 "$forced" device_allreduce
EMU_DELAY_US=30 case_ 3 ob1 "$forced" device_allreduce
EMU_VA=same case_ 2 ob1 "" device_allreduce

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
# Kernels touch what they declare, memory lies where it will, work is late.
EMU_NUM_DEVICES=2 EMU_CHECK_FOOTPRINT=1 case_ 2 ob1 "$(with two_shot)" algorithms two_shot
EMU_LINKS=$machines/dgx1v.topology:0,1,4 EMU_CHECK_FOOTPRINT=1 \
    case_ 3 ob1 "$(with tree)" algorithms tree
EMU_NUM_DEVICES=3 EMU_VA=same case_ 3 ob1 "$(with two_shot)" algorithms two_shot
EMU_VA=same case_ 4 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_DELAY_US=30 EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with one_shot)" algorithms one_shot
EMU_DELAY_US=30 EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_DELAY_US=30 EMU_LINKS=$machines/dgx1v.topology:0,3,4 case_ 3 ob1 "$(with tree)" algorithms tree
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
# Shares of the vector: given, with zeros, by mapped memory and by messages.
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of|hetcoll: coll_hetcoll_shares is not used on'
for shares in 3,1,0,2 0,0,5,0 auto; do
    EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with weighted) --mca coll_hetcoll_shares $shares" algorithms weighted
done
case_ 4 ucx "$(with weighted) --mca coll_hetcoll_shares 1,2,3,4 --mca coll_hetcoll_ipc never" algorithms weighted
# A rank that comes late: the algorithm can run once the ranks have told each other.
late="$(with weighted) --mca coll_hetcoll_skew 1"
EMU_NUM_DEVICES=4 case_ 4 ob1 "$late" late_ranks
EMU_DELAY_US=300 case_ 3 ob1 "$late" late_ranks
EMU_NUM_DEVICES=3 case_ 3 ob1 "$late --mca coll_hetcoll_shares 1,1,0" late_ranks
EMU_NUM_DEVICES=4 case_ 4 ob1 "$late --mca coll_hetcoll_max_memory 1M" late_ranks without_memory
EMU_NUM_DEVICES=3 case_ 3 ob1 "$late" late_ranks several
case_ 3 ob1 "$late --mca coll_hetcoll_progress_thread 1" late_ranks several
message='hetcoll: coll_hetcoll_shares is not used on .*: ranks have set it to different values'
case_ 3 ob1 "$(with weighted)" late_ranks differ
message=
also_expected="$also_expected|hetcoll: (MPI_Allreduce failed|memory of another GPU cannot be mapped)"
EMU_DELAY_US=150000 EMU_NUM_DEVICES=4 case_ 4 ob1 "$late" late_ranks unmapped 0
EMU_NUM_DEVICES=4 case_ 4 ob1 "$late" late_ranks launch 3
# Some pairs of GPUs, or all, do not reach each other: messages for these.
also_expected='hetcoll'
EMU_NUM_DEVICES=4 EMU_NO_PEER=0-1,2-3 case_ 4 ob1 "$(with ring)" algorithms ring
EMU_NUM_DEVICES=4 EMU_NO_PEER=0-3 case_ 4 ucx "$(with rabenseifner)" algorithms rabenseifner
EMU_NUM_DEVICES=2 EMU_NO_PEER=all case_ 4 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=3 EMU_NO_PEER=all case_ 3 ob1 "$forced" algorithms any
EMU_NUM_DEVICES=3 EMU_NO_PEER=0-2 case_ 3 ob1 "$(with two_shot)" algorithms any
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
case_ 4 ob1 "$(with ring) --mca coll_hetcoll_ipc never" algorithms ring
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical) --mca coll_hetcoll_ipc never" algorithms hierarchical

# Memory of other kinds under the algorithms that map it.
for algorithm in two_shot one_shot leader ring; do
    case_ 2 ob1 "$(with $algorithm)" other_memory
done
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" other_memory
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" other_memory
EMU_ID_STAYS=1 EMU_NUM_DEVICES=2 case_ 2 ob1 "$(with two_shot)" other_memory

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
nodes_ 0,0,1,1 ob1 "$(with ring)" algorithms ring
nodes_ 1,0,1 ob1 "$(with host)" algorithms host
EMU_NUM_DEVICES=2 nodes_ 0,0,0,1,1 ob1 "$forced" algorithms any
nodes_ 0,1,1 ob1 "$forced" mixed_memory
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,1 ob1 "$(with hierarchical)" other_memory

# And by namespaces: other host names, other shared memory, TCP in between.
if unshare --uts --mount --ipc true 2>/dev/null; then
    also_expected="$also_expected|hetcoll: ranks on one machine are in different containers"
    also_expected="$also_expected|plm:rsh: Warning: setpgid" # its race with the agent's own
    hosts_ 3 nodea:1,nodeb:2 ob1 "$(with hierarchical)" algorithms hierarchical
    EMU_NUM_DEVICES=2 hosts_ 5 nodea:3,nodeb:2 ob1 "$(with hierarchical)" algorithms hierarchical
    hosts_ 4 nodea:2,nodeb:2 ob1 "$forced" algorithms any
else
    echo 'skipped hosts in namespaces: unshare does not work here'
    skipped=$((skipped + 1))
fi
also_expected=
