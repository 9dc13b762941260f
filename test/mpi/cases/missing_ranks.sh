#!/bin/bash
# missing_ranks.sh: who waits says for whom, in one line of each node.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

soon="$forced --mca coll_hetcoll_report_after 2"
waits='hetcoll: rank [0-9] waits for [2-7] s in call number 3 on communicator [0-9]+, MPI_Allreduce of'
for way in blocking nonblocking; do
    message="$waits 2 float32 \(8 bytes\), sum: missing rank 2 \(process [0-9]+ is stopped, last in call 2, MPI_Allreduce of 2 float32 \(8 bytes\), sum\); 2 of 3 ranks of this node are there"
    case_ 3 ob1 "$soon" missing_ranks 2 stopped host 2 $way
    message="$waits 100000 float32 \(400000 bytes\), sum: missing rank 0 \(process [0-9]+ sleeps, last in call 2, .*\); 3 of 4 ranks"
    case_ 4 ob1 "$soon" missing_ranks 0 sleeps device 100000 $way
done
message="$waits 2 float32 \(8 bytes\), sum: missing rank 1 \(process [0-9]+ is stopped.*; 1 of 2 ranks"
case_ 2 ucx "$soon" missing_ranks 1 stopped device 2 blocking

# The node that knows, and the other one, which has no message.
message="hetcoll: rank 0 waits .*: missing the node of rank 2 \(on [^ ]+\), from which there is no message"
also_expected='hetcoll: rank 2 waits .*: missing rank 3 \(process [0-9]+ is stopped, .*; 1 of 2 ranks of this node'
nodes_ 0,0,1,1 ob1 "$soon" missing_ranks 3 stopped host 2 blocking
also_expected=
message="hetcoll: rank 0 waits .*: missing the node of rank 2 \(on [^ ]+\), from which"
nodes_ 0,0,1 ob1 "$soon" missing_ranks 2 sleeps host 2 blocking

# hetcoll_info --live while a rank is stopped.
export HETCOLL_BUILDDIR=$build
message=
case_ 3 ob1 "$forced" missing_ranks 2 shown host 2 blocking
case_ 4 ob1 "$forced" missing_ranks 0 shown device 2 nonblocking

# Nobody waits so long, or nobody is to say so.
message=
case_ 3 ob1 "$forced" missing_ranks 2 sleeps host 2 blocking
case_ 3 ob1 "$forced --mca coll_hetcoll_report_after 0" missing_ranks 1 sleeps host 2 blocking

end_cases
