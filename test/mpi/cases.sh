# The cases of run.sh: which program, at how many ranks, over which PML, with which options. Every
# number of ranks and both PMLs meet every path; not every product of them.
# shellcheck shell=bash disable=SC2154,SC2034
forced="--mca coll hetcoll"

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

# Every algorithm, forced: it serves the calls itself. with ALGORITHM is the option.
machines=$here/../../topology/machines
with() { echo "$forced --mca coll_hetcoll_algorithm $1"; }
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
nodes_() # nodes_ NODES PML OPTIONS PROGRAM...
{
    local nodes=$1
    shift
    wrapper="$here/on_nodes.sh $nodes" case_ "$(echo "$nodes" | tr , '\n' | grep -c .)" "$@"
}
nodes_ 0,1 ob1 "$forced" algorithms any
nodes_ 0,1,1 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=3 nodes_ 0,1,1,1 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=2 nodes_ 0,1,0,1,0 ob1 "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,2 ucx "$(with hierarchical)" algorithms hierarchical
EMU_NUM_DEVICES=4 nodes_ 0,1,1,1,1,1,1,1 ob1 "$(with hierarchical)" algorithms hierarchical
nodes_ 0,0,1,1 ob1 "$(with ring)" algorithms ring
nodes_ 1,0,1 ob1 "$(with host)" algorithms host
EMU_NUM_DEVICES=2 nodes_ 0,0,0,1,1 ob1 "$forced" algorithms any
nodes_ 0,1,1 ob1 "$forced" mixed_memory
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,1 ob1 "$(with hierarchical)" other_memory

# And by namespaces: other host names, other shared memory, TCP in between.
hosts_() # hosts_ RANKS HOST:SLOTS,... PML OPTIONS PROGRAM...
{
    local ranks=$1 hosts=$2 pml=$3 options=$4
    shift 4
    options="$options --mca plm_rsh_agent $here/as_host.sh --mca routed direct"
    case_ "$ranks" "$pml" "$options --mca btl self,vader,tcp -H $hosts" "$@"
}
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

# Sums in the order of the ranks, whatever else is asked for.
same="$forced --mca coll_hetcoll_reproducible 1"
case_ 2 ob1 "$same" reproducible
case_ 3 ucx "$same" reproducible
EMU_NUM_DEVICES=4 case_ 4 ob1 "$same" reproducible
case_ 7 ob1 "$same --mca coll_hetcoll_adapt_chunk 1" reproducible
EMU_NUM_DEVICES=3 case_ 3 ob1 "$same --mca coll_hetcoll_ipc never --mca coll_hetcoll_chunk_bytes 4096" \
    reproducible
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
case_ 4 ob1 "$same --mca coll_hetcoll_algorithm ring" reproducible
message='hetcoll: coll_hetcoll_shares and coll_hetcoll_skew do nothing while'
EMU_NUM_DEVICES=4 case_ 4 ob1 "$same --mca coll_hetcoll_skew 1 --mca coll_hetcoll_shares 1,2,3,4" reproducible
message=
EMU_NUM_DEVICES=5 case_ 5 ob1 "$same --mca coll_hetcoll_algorithm one_shot" reproducible
nodes_ 0,1,1 ob1 "$same --mca coll_hetcoll_algorithm hierarchical" reproducible
also_expected=
nodes_ 0,1,1 ob1 "$forced" reproducible one
nodes_ 0,1 ob1 "$same" reproducible
nodes_ 0,1,0,1 ucx "$same" reproducible
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,2 ob1 "$same" reproducible
EMU_NUM_DEVICES=3 nodes_ 0,0,0,1,1,1,1 ob1 "$same" reproducible
nodes_ 0,0,1,1,2,2 ucx "$same" reproducible
nodes_ 2,1,0,0,1,2,0 ob1 "$same" reproducible
also_expected='hetcoll: a rank cannot use its GPU now'
case_ 3 ob1 "$same" reproducible staged
nodes_ 0,1,1,0 ob1 "$same" reproducible staged
also_expected=

# Sums of floats as fixed-point numbers, by every algorithm: the same bits.
case_ 1 ob1 "$forced" fixed_point
case_ 4 ob1 "$forced" fixed_point
case_ 3 ucx "$forced" fixed_point
EMU_NUM_DEVICES=4 case_ 4 ob1 "$forced" fixed_point
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
for algorithm in recursive_doubling rabenseifner ring one_shot two_shot leader tree hierarchical host copy_in \
    ordered; do
    case_ 3 ob1 "$(with $algorithm)" fixed_point
done
also_expected=
nodes_ 0,0,1,1,2 ob1 "$forced" fixed_point
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$(with hierarchical)" fixed_point
case_ 3 ob1 "$forced --mca coll_hetcoll_reproducible 1" fixed_point
also_expected='hetcoll: a rank (cannot use its GPU now|converts to fixed point on the host)'
case_ 3 ob1 "$forced" fixed_point staged
also_expected='hetcoll: MPI_Allreduce failed, the receive buffer is undefined: an element of some rank is no'
case_ 1 ob1 "$forced" fixed_point range
case_ 3 ob1 "$forced" fixed_point range
also_expected=
message='an element of some rank is no number or beyond \+-10922.7, the largest that 3 ranks can add with coll_hetcoll_fixed_point 16: scale' \
    case_ 3 ob1 "$forced" fixed_point once
message='hetcoll adds floats as usual: the ranks of this communicator have different coll_hetcoll_fixed_point' \
    case_ 3 ob1 "$forced" fixed_point differ

# Sums by aggregators, real ones on the loopback device.
if [ -x "$build/hetcoll_aggregator" ]; then
    export HETCOLL_AGGREGATOR=$build/hetcoll_aggregator
    also_expected='^\{"connections": '
    with_() # with_ WHAT RANKS PML OPTIONS PROGRAM...
    {
        launcher="$here/with_aggregators.sh $1"
        shift
        case_ "$@"
        launcher=
    }
    served=$(with in_network)
    with_ one 2 ob1 "$served" in_network
    with_ one 3 ob1 "$served" in_network
    with_ leaves 4 ob1 "$served" in_network
    with_ one 3 ob1 "$served --mca coll_hetcoll_aggregator_window 1 --mca coll_hetcoll_aggregator_copy 65536" \
        in_network
    with_on() # with_on NODES WHAT RANKS PML OPTIONS PROGRAM...
    {
        local wrapper="$here/on_nodes.sh $1"
        shift
        with_ "$@"
    }
    with_on 0,0,1,1 one 4 ob1 "$served" in_network
    with_on 0,0,1,1 leaves 4 ob1 "$served" in_network
    with_on 0,0,0,1,1,1 one 6 ob1 "$served --mca coll_hetcoll_aggregator_copy 100000" in_network
    with_on 0,1,0 one 3 ob1 "$served" in_network
    with_on 0,1,1 one 3 ob1 "$served" in_network
    # A node's vector goes to its aggregator once, as many ranks as it has.
    HETCOLL_TEST_PAYLOAD=8000024 with_on 0,0,1,1 one 4 ob1 "$served" in_network once
    HETCOLL_TEST_PAYLOAD=16000048 with_on 0,1,0,1 one 4 ob1 "$served" in_network once
    also_expected="$also_expected|hetcoll: coll_hetcoll_algorithm in_network cannot run on a communicator of"
    with_ one 3 ob1 "$served" fixed_point
    with_on 0,0,1,1 one 4 ob1 "$served" fixed_point
    with_on 0,0,1,1 one 4 ob1 "$served" nonblocking
    with_ one 3 ob1 "$served" nonblocking
    with_ one 3 ob1 "$served --mca coll_hetcoll_progress_thread 1" nonblocking
    with_ one 2 ob1 "$served" threads
    message='no aggregators on this communicator of [34] ranks from now on, other algorithms serve it: .*aggregator 127'
    with_ one 3 ob1 "$served" in_network killed
    with_ one 3 ob1 "$served --mca coll_hetcoll_aggregator_copy 1M" in_network killed_in_place
    with_ one 3 ob1 "$served" in_network killed_before
    HETCOLL_TEST_KILL=0 with_ leaves 4 ob1 "$served" in_network killed_in_place
    HETCOLL_TEST_KILL=1 with_ leaves 4 ob1 "$served" in_network killed
    with_on 0,0,1,1 one 4 ob1 "$served" in_network killed
    with_on 0,0,1,1 one 4 ob1 "$served --mca coll_hetcoll_aggregator_copy 1M" in_network killed_in_place
    with_on 0,0,1,1 one 4 ob1 "$served" in_network killed_before
    HETCOLL_TEST_KILL=0 with_on 0,0,1,1 leaves 4 ob1 "$served" in_network killed_in_place
    HETCOLL_TEST_KILL=1 with_on 0,0,1,1 leaves 4 ob1 "$served" in_network killed
    with_ nobody 3 ob1 "$forced" in_network none
    with_ other_key 3 ob1 "$forced" in_network none
    message='hetcoll uses no aggregators: the ranks of this communicator have different coll_hetcoll_aggregators'
    with_ one 3 ob1 "$forced" in_network differ
    message='hetcoll uses no aggregators: .*/key'
    with_ open_key 3 ob1 "$forced" in_network none
    message='hetcoll is off.*coll_hetcoll_aggregators: '
    case_ 2 ob1 "$forced --mca coll_hetcoll_aggregators nowhere" all_collectives
    message= also_expected=
else
    echo 'skipped aggregators: they are not built'
    skipped=$((skipped + 1))
    message='no aggregators on this communicator of 3 ranks from now on, .*: this hetcoll was built without UCX and OpenSSL' \
        launcher="$here/with_aggregators.sh nobody" case_ 3 ob1 "$forced" in_network none
fi

# What calls cost.
case_ 2 ob1 "$(with leader)" counts leader leader
case_ 5 ob1 "$(with leader)" counts leader leader
for ranks in 2 4 7; do
    EMU_NUM_DEVICES=$ranks case_ $ranks ob1 "$(with two_shot)" counts two_shot two_shot
done
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with two_shot)" counts halves two_shot
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with ring)" counts halves ring
EMU_LINKS=$machines/dgx1v.topology:0,1,2,4 case_ 4 ob1 "$(with tree)" counts halves tree
for algorithm in host leader copy_in; do
    case_ 3 ob1 "$(with $algorithm)" counts driver_calls $algorithm
done
EMU_NUM_DEVICES=2 case_ 2 ob1 "$(with copy_in)" counts driver_calls copy_in

for ranks in 2 3 4 7; do
    case_ $ranks ob1 "$forced" mixed_memory
done
case_ 4 ucx "$forced" mixed_memory

case_ 1 ob1 "$forced" not_accelerated
case_ 2 ob1 "$forced" not_accelerated
case_ 5 ob1 "$forced" not_accelerated
case_ 3 ucx "$forced" not_accelerated

case_ 2 ob1 "$forced" other_memory
case_ 3 ucx "$forced" other_memory
EMU_ID_STAYS=1 case_ 2 ob1 "$forced --mca coll_hetcoll_pointer_cache validated" other_memory
case_ 2 ob1 "$forced --mca coll_hetcoll_pointer_cache off" other_memory
also_expected='coll_hetcoll_pointer_cache hooked: CUDA memory events are not available'
case_ 2 ob1 "$forced --mca coll_hetcoll_pointer_cache hooked" other_memory
case_ 3 ucx "$forced --mca coll_hetcoll_pointer_cache hooked" other_memory
also_expected=

case_ 1 ob1 "$forced" limits
case_ 4 ob1 "$forced" limits
case_ 3 ucx "$forced" limits
if [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 14 ]; then
    EMU_MEM_MB=6144 case_ 2 ob1 "$forced" limits large # more than 2^31 bytes
fi

case_ 2 ob1 "$forced" streams
case_ 4 ob1 "$forced" streams
case_ 3 ucx "$forced" streams
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced" streams
case_ 2 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams context
case_ 4 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams context
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams

# User-defined operations on two bytes, as Horovod's half.
known="$forced --mca coll_hetcoll_user_ops project_bfloat16_max=bfloat16:max"
for ranks in 1 2 4; do
    case_ $ranks ob1 "$known" user_ops known
done
case_ 3 ucx "$known" user_ops known
EMU_NUM_DEVICES=4 case_ 4 ob1 "$known --mca coll_hetcoll_reproducible 1" user_ops known
nodes_ 0,1,1 ob1 "$known" user_ops known
nodes_ 0,1 ob1 "$known --mca coll_hetcoll_algorithm ring" user_ops known
case_ 3 ob1 "$forced --mca coll_hetcoll_recognize_ops 0" user_ops off
message='the reduction function project_half_prod is not prod of float16'
case_ 2 ob1 "$forced --mca coll_hetcoll_user_ops project_half_prod=half:prod" user_ops wrong
message="coll_hetcoll_user_ops: 'nothing' is left out"
case_ 2 ob1 "$known,nothing" user_ops known
message='the ranks of a communicator have different coll_hetcoll_user_ops'
case_ 3 ob1 "$forced" user_ops differ
message=

case_ 2 ob1 "$forced" types
case_ 3 ob1 "--mca coll ^hetcoll" types

for ranks in 1 2 3 5; do
    case_ $ranks ob1 "$forced" own_collectives
done
case_ 4 ucx "$forced" own_collectives
EMU_NUM_DEVICES=4 case_ 4 ob1 "$forced" own_collectives
EMU_NUM_DEVICES=3 EMU_DELAY_US=30 case_ 3 ob1 "$forced" own_collectives
EMU_LINKS=$machines/dgx1v.topology:0,1,4 case_ 3 ob1 "$forced" own_collectives
case_ 3 ob1 "$forced --mca coll_hetcoll_ipc never" own_collectives
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced" own_collectives
for ranks in 1 2 3 5; do
    case_ $ranks ob1 "$forced" nonblocking
done
case_ 4 ucx "$forced" nonblocking
case_ 3 ob1 "$forced --mca coll_hetcoll_progress_thread 1" nonblocking
EMU_NUM_DEVICES=3 EMU_DELAY_US=30 case_ 3 ob1 "$forced" nonblocking
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced" nonblocking
EMU_NUM_DEVICES=3 EMU_NO_PEER=all also_expected='hetcoll: some GPUs of this node' \
    case_ 3 ob1 "$forced" nonblocking

# Other collectives on device memory.
for ranks in 1 2 3 5; do
    case_ $ranks ob1 "$forced" staged_collectives
done
case_ 4 ucx "$forced" staged_collectives
EMU_NUM_DEVICES=3 EMU_DELAY_US=30 case_ 3 ob1 "$forced" staged_collectives more
case_ 2 ob1 "$forced --mca coll_hetcoll_stage_pinned 1M" staged_collectives more
case_ 2 ob1 "$forced --mca coll_hetcoll_pre_sync context" staged_collectives more
case_ 3 ob1 "$forced" staged_collectives threads
HETCOLL_TEST_CUDA_AWARE=1 case_ 3 ob1 "$forced --mca coll_hetcoll_pml_device never" \
    staged_collectives aware
also_expected='hetcoll: (MPI_[A-Za-z_]* failed on this rank|stages through pageable memory)'
case_ 1 ob1 "$forced" staged_collectives faults
case_ 3 ob1 "$forced" staged_collectives faults
also_expected=

# Wave-synchronous training: host memory under any MPI, device memory under hetcoll.
for ranks in 1 2 4; do
    case_ $ranks ob1 "--mca coll ^hetcoll" wsp host
done
case_ 3 ucx "$forced" wsp host
case_ 1 ob1 "$forced" wsp device
case_ 3 ob1 "$forced" wsp device
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced --mca coll_hetcoll_progress_thread 1" wsp device
EMU_NUM_DEVICES=2 nodes_ 0,0,1 ob1 "$forced" wsp device
case_ 2 ob1 "$forced" wsp device_fails
case_ 2 ob1 "--mca coll ^hetcoll" wsp no_device
case_ 3 ob1 "--mca coll ^hetcoll" wsp no_threads
case_ 2 ob1 "--mca coll ^hetcoll" wsp forget

case_ 2 ob1 "$forced" threads
case_ 4 ob1 "$forced" threads
case_ 3 ucx "$forced" threads
case_ 2 ob1 "$forced" threads many
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced" threads many
case_ 2 ob1 "$forced --mca coll_hetcoll_progress_thread 1" threads many

case_ 2 ob1 "$forced" host_path
case_ 4 ob1 "$forced" host_path
case_ 2 ucx "$forced" host_path
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced" host_path no_gpu
LD_LIBRARY_PATH='' case_ 4 ob1 "$forced" host_path no_gpu
CUDA_VISIBLE_DEVICES='' case_ 2 ob1 "$forced" host_path no_gpu

case_ 2 ob1 "$forced" steady_state
case_ 3 ob1 "$forced" steady_state
case_ 4 ucx "$forced" steady_state
for algorithm in two_shot one_shot copy_in ring; do
    EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with $algorithm)" steady_state
done
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" steady_state
EMU_LINKS=$machines/dgx1v.topology:0,1,4 case_ 3 ob1 "$(with tree)" steady_state
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,1 ob1 "$(with hierarchical)" steady_state

# Parameters set while the program runs.
for ranks in 1 2 4; do
    case_ $ranks ob1 "$forced" settings
done
case_ 3 ucx "$forced" settings
also_expected='to different values while the program ran'
case_ 2 ob1 "$forced" settings differ
case_ 3 ob1 "$forced" settings differ
also_expected='ignores what the program set'
case_ 2 ob1 "$forced" settings unknown
also_expected=

# What can be seen from outside.
case_ 2 ob1 "$(with ring)" observed variables
case_ 3 ucx "$(with ring)" observed variables
for ranks in 1 2 3; do
    case_ $ranks ob1 "$(with ring) --mca coll_hetcoll_trace $work/trace.%r" observed trace "$work/trace"
done
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced --mca coll_hetcoll_trace $work/trace.%r" observed host "$work/trace"
EMU_FAIL='cuMemHostAlloc:*:2' EMU_FAIL_RANK=1 case_ 3 ob1 "$forced" observed reasons
case_ 2 ob1 "$forced --mca coll_hetcoll_max_memory 1M" observed bound 1048576
case_ 3 ob1 "$(with two_shot) --mca coll_hetcoll_max_memory 262144" observed bound 262144
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced --mca coll_hetcoll_max_memory 512K" observed bound 524288
message='hetcoll: no trace of rank 0: coll_hetcoll_trace: /proc/none/trace.0 cannot be written'
case_ 2 ob1 "$forced --mca coll_hetcoll_trace /proc/none/trace" settings
message='hetcoll is off.*coll_hetcoll_max_memory 5 is too small, write at least 262144, or 0'
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced --mca coll_hetcoll_max_memory 5" all_collectives
message=

# Every failure has a message of hetcoll's; thousands of them, so mpirun tears some lines.
also_expected='.'
# Some 1,700 faults, one after the other.
limit=300 case_ 2 ob1 "$forced" faults
limit=300 case_ 4 ob1 "$forced" faults
limit=300 case_ 3 ucx "$forced" faults
case_ 1 ob1 "$forced" nonblocking_faults every
case_ 3 ob1 "$forced" nonblocking_faults every
case_ 2 ob1 "$forced --mca coll_hetcoll_fixed_point 8" nonblocking_faults every
also_expected=
also_expected='hetcoll: MPI_Allreduce failed|hetcoll: a rank cannot'
for algorithm in ring two_shot one_shot; do
    EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with $algorithm)" nonblocking_faults launch
done
case_ 2 ob1 "$(with ring) --mca coll_hetcoll_progress_thread 1" nonblocking_faults launch
case_ 2 ucx "$(with ring) --mca coll_hetcoll_ipc never" nonblocking_faults launch
case_ 4 ob1 "$(with ring)" nonblocking_faults launch
also_expected=

# Failures end the job, none waits for ever.
for ranks in 2 4; do
    for pml in ob1 ucx; do
        must_fail='MPI_ERR_TRUNCATE|show_help.c' # in whose place Open MPI 4.1.4 may lose its own words
        nodes=$(seq -s , "$ranks") # so that there are messages
        nodes_ "$nodes" $pml "$forced" aborts small_message
        nodes_ "$nodes" $pml "$forced" aborts large_message
        must_fail='MPI_ERR_OTHER|show_help.c'
        case_ $ranks $pml "$forced" aborts driver
        must_fail='signal 9'
        case_ $ranks $pml "$forced" aborts killed
    done
done
must_fail='signal 9'
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" aborts killed_within
case_ 4 ucx "$(with leader)" aborts killed_within
EMU_LINKS=$machines/dgx1v.topology:0,1,2,4 case_ 4 ob1 "$(with tree)" aborts killed_within
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" aborts killed_within
EMU_NUM_DEVICES=2 nodes_ 0,0,0,1,1 ob1 "$(with hierarchical)" aborts killed_within
case_ 3 ob1 "--mca coll ^hetcoll" wsp killed
must_fail=

# Memory that one rank cannot map, from the first trial on or later: one message, right results.
message='hetcoll: some GPUs of this node do not share memory'
EMU_FAIL="cuIpcOpenMemHandle:*:999" EMU_FAIL_RANK=1 EMU_NUM_DEVICES=3 case_ 3 ob1 "$forced" mapping_faults trial
EMU_FAIL=cuIpcOpenMemHandle:2:999 EMU_FAIL_RANK=0 case_ 4 ucx "$forced" mapping_faults trial
message='hetcoll: memory of another GPU cannot be mapped'
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" mapping_faults later 1
case_ 3 ob1 "$(with leader)" mapping_faults later 0
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" mapping_faults later 2
message=
# Kernels over peers' memory that fail: an error on every rank.
also_expected='hetcoll: MPI_Allreduce failed|hetcoll: a rank cannot'
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" mapping_faults launch 2
case_ 4 ucx "$(with leader)" mapping_faults launch 0
case_ 2 ob1 "$(with one_shot)" mapping_faults launch 1
case_ 3 ob1 "$(with copy_in)" mapping_faults launch 0
also_expected=
must_fail='MPI_ABORT was invoked|show_help.c'
EMU_NUM_DEVICES=2 case_ 2 ob1 "$(with two_shot)" mapping_faults kernel 1
case_ 3 ob1 "$(with two_shot)" mapping_faults kernel 0
must_fail=

# No room for what the ranks of a node share: one message, right results. Open MPI has its own
# elsewhere.
if unshare --mount true 2>/dev/null; then
    message='hetcoll: ranks of a node do without shared memory'
    launcher="$here/small_shm.sh 600k"
    case_ 4 ob1 "$forced --mca btl_vader_backing_directory /tmp" mapping_faults trial
    launcher='' message=''
else
    echo 'skipped a full /dev/shm: unshare does not work here'
    skipped=$((skipped + 1))
fi

for test in many leaked reset requests destroyed ended anew after side before forked untouched; do
    case_ 3 ob1 "$forced" lifecycle $test
done
case_ 2 ucx "$forced" lifecycle many
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" lifecycle requests
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" lifecycle destroyed
case_ 2 ucx "$forced" lifecycle forked
case_ 3 ob1 "$forced" sessions
case_ 2 ob1 "$forced" spawned
case_ 1 ob1 "$forced" spawned
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced" spawned
for test in communicators splits buffers handles; do
    case_ 3 ob1 "$forced" churn $test
done
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced" churn communicators
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" churn buffers
EMU_NUM_DEVICES=2 case_ 4 ob1 "$forced" churn splits
case_ 1 ob1 "$forced" churn buffers
case_ 4 ucx "$forced" churn splits

# What programs bring.
case_ 2 ob1 "$forced" callers contexts
EMU_NUM_DEVICES=3 case_ 3 ob1 "$forced" callers contexts
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with ring)" callers contexts
case_ 3 ob1 "$forced" callers padding
EMU_NUM_DEVICES=2 case_ 4 ob1 "$forced" callers padding
case_ 3 ob1 "$(with ring) --mca coll_hetcoll_ipc never" callers padding
for level in single funneled serialized multiple; do
    case_ 2 ob1 "$forced" callers level $level
done
message='hetcoll ignores its tuning table and chooses algorithms by its model'
case_ 3 ob1 "$forced" callers tables "$here/../../tools/hetcoll_tune_test.json"
message=

# R21: the calls of trainings with Horovod, played by its one background thread, launched as it launches.
# Without a GPU, and without hetcoll, on host memory.
horovod="-mca btl ^openib -bind-to none"
traces=$here/../../bench/traces
replay=../../bench/horovod_replay
for trace in resnet50_float resnet50_half resnet50_float_50ms bert_large_like; do
    case_ 2 ob1 "$horovod $forced" $replay --check --in-kernels --shrink 256 \
        "$traces/horovod_$trace.csv"
done
for trace in digits_float digits_half; do
    EMU_NUM_DEVICES=2 case_ 2 ob1 "$horovod $forced" $replay --check --in-kernels --shrink 4 \
        "$traces/horovod_$trace.csv"
done
EMU_NUM_DEVICES=4 case_ 4 ob1 "$horovod $forced" $replay --check --in-kernels --shrink 64 \
    "$traces/horovod_resnet50_half.csv"
EMU_NUM_DEVICES=3 case_ 3 ob1 "$horovod $forced" $replay --check --in-kernels --shrink 1024 \
    "$traces/horovod_every_collective.csv"
case_ 2 ob1 "$horovod $forced --mca coll_hetcoll_recognize_ops 0" $replay --check --shrink 1024 \
    "$traces/horovod_resnet50_half.csv"
case_ 2 ob1 "$horovod --mca coll ^hetcoll" $replay --check --host --shrink 1024 \
    "$traces/horovod_resnet50_half.csv"
