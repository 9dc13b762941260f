#!/bin/bash
# missing_ranks.sh: who waits says for whom, in one line of each node.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

soon="$forced --mca coll_hetcoll_report_after 2"
waits='hetcoll: rank [0-9] waits for [2-7] s in call number 3 on communicator [0-9]+,'
for way in blocking nonblocking; do
    [ $way = blocking ] && name=MPI_Allreduce || name=MPI_Iallreduce
    message="$waits $name of 2 float32 \(8 bytes\), sum: missing rank 2 \(process [0-9]+ is stopped, last in call 2, MPI_Allreduce of 2 float32 \(8 bytes\), sum\); 2 of 3 ranks of this node are there"
    case_ 3 ob1 "$soon" missing_ranks 2 stopped host 2 $way
    message="$waits $name of 100000 float32 \(400000 bytes\), sum: missing rank 0 \(process [0-9]+ sleeps, last in call 2, .*\); 3 of 4 ranks"
    case_ 4 ob1 "$soon" missing_ranks 0 sleeps device 100000 $way
done
message="$waits MPI_Allreduce of 2 float32 \(8 bytes\), sum: missing rank 1 \(process [0-9]+ is stopped.*; 1 of 2 ranks"
case_ 2 ucx "$soon" missing_ranks 1 stopped device 2 blocking

message="$waits MPI_Allreduce_init of 2 float32 \(8 bytes\), sum: missing rank 1 \(process [0-9]+ is stopped, last in call 2, MPI_Allreduce of"
case_ 2 ob1 "$soon" missing_ranks 1 stopped host 2 made

# In a call that Open MPI serves. One node knows, and the first rank's says that it does not.
served='waits for [2-7] s in MPI_Barrier on communicator [0-9]+, which Open MPI serves:'
message="hetcoll: rank [0-9] $served missing rank 2 \(process [0-9]+ is stopped, last in call 2, MPI_Allreduce of 2 float32 \(8 bytes\), sum\); 2 of 3 ranks of this node have come"
case_ 3 ob1 "$soon" missing_ranks 2 stopped host 2 barrier
case_ 3 ucx "$soon" missing_ranks 2 stopped device 2 barrier
also_expected="hetcoll: rank [01] $served 2 of 2 ranks of this node have come"
message="hetcoll: rank 2 $served missing rank 3 \(process [0-9]+ is stopped, .*; 1 of 2 ranks of this node have come"
nodes_ 0,0,1,1 ob1 "$soon" missing_ranks 3 stopped host 2 barrier 3 2
also_expected=

# Who cannot look at a process does not take it for one that has ended.
message="$waits MPI_Allreduce of 100000 float32 .*: missing rank 1 \(process [0-9]+ cannot be looked at, last in call 2"
case_ 2 ob1 "$soon" missing_ranks 1 unseen device 100000 blocking

# In the first call, before there is memory that ranks share.
message="hetcoll: rank [01] waits for [2-7] s in call number 1 .*: missing rank 2 \(process [0-9]+ is stopped\), from which there is no message"
case_ 3 ob1 "$soon" missing_ranks 2 stopped host 2 blocking 1

# Again after 4 and 16 times as long: the third line, so the two before it have been, too.
also_expected='waits for [14] s in call number 2 .*: missing rank 1 \(process [0-9]+ sleeps'
message='waits for 1[67] s in call number 2 .*: missing rank 1 \(process [0-9]+ sleeps'
case_ 2 ob1 "$forced --mca coll_hetcoll_report_after 1" missing_ranks 1 sleeps host 2 blocking 2 3
also_expected=

# Stopped in the middle of a schedule, which the links make last for seconds.
message="hetcoll: rank [02] waits for [2-7] s in call number 2 .*: in step [0-9]+ of [0-9]+, which (receives from|sends to) rank [0-2] \(process [0-9]+ [a-z ]+\), [0-9]+ of [0-9]+ bytes are done; missing rank 1 \(process [0-9]+ is stopped\)"
EMU_NUM_DEVICES=3 EMU_LINK_GBPS=0.0002 case_ 3 ob1 "$(with ring) --mca coll_hetcoll_ipc never \
    --mca coll_hetcoll_report_after 2 --mca coll_hetcoll_chunk_bytes 16384" \
    missing_ranks 1 midway device 30000 blocking 2

# A rank waits for its own GPU, which has to do what the program started before.
message='hetcoll: rank 1 waits for [2-7] s in call number 4 .*: for its own GPU, a copy, or the program.s work before it'
also_expected='hetcoll: rank [02] waits .*: missing rank 1 \(process [0-9]+ (sleeps|runs), last in call [34],'
EMU_HOSTILE=0 case_ 3 ob1 "$soon" missing_ranks 1 gpu device 2 blocking 4 2
also_expected=

# The node that knows, and the other one, which has no message.
message="hetcoll: rank 0 waits .*: missing the node of rank 2 \(on [^ ]+\), from which there is no message"
also_expected='hetcoll: rank 2 waits .*: missing rank 3 \(process [0-9]+ is stopped, .*; 1 of 2 ranks of this node'
nodes_ 0,0,1,1 ob1 "$soon" missing_ranks 3 stopped host 2 blocking 3 2
also_expected=
message="hetcoll: rank 0 waits .*: missing the node of rank 2 \(on [^ ]+\), from which"
nodes_ 0,0,1 ob1 "$soon" missing_ranks 2 sleeps host 2 blocking

# hetcoll_info --live while a rank is stopped.
export HETCOLL_BUILDDIR=$build
message=
case_ 3 ob1 "$forced" missing_ranks 2 shown host 2 blocking
case_ 4 ob1 "$forced" missing_ranks 0 shown device 2 nonblocking

# And by mpirun on all hosts of a job, on one of which a rank is alone.
if unshare --uts --mount --ipc --pid --fork --mount-proc true 2>/dev/null; then
    also_expected='hetcoll: rank [0-2] waits|hetcoll: ranks on one machine|plm:rsh: Warning: setpgid'
    launcher=$here/live_on_hosts.sh hosts_ 3 nodea:2,nodeb:1 ob1 "$forced --mca coll_hetcoll_report_after 1" \
        missing_ranks 1 sleeps host 2 blocking 3 7
    also_expected=
else
    skip_ 'hosts in namespaces: unshare does not work here'
fi

# Nobody waits so long, or nobody is to say so.
message=
case_ 3 ob1 "$forced" missing_ranks 2 sleeps host 2 blocking 3 0
case_ 3 ob1 "$forced --mca coll_hetcoll_report_after 0" missing_ranks 1 sleeps host 2 blocking 3 0

end_cases
