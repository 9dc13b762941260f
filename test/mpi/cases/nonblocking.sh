#!/bin/bash
# nonblocking.sh: MPI_Iallreduce, persistent operations, and threads.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

for ranks in 1 2 3 5; do
    case_ $ranks ob1 "$forced" nonblocking
done
case_ 4 ucx "$forced" nonblocking
case_ 3 ob1 "$forced --mca coll_hetcoll_progress_thread 1" nonblocking
EMU_NUM_DEVICES=3 EMU_DELAY_US=30 case_ 3 ob1 "$forced" nonblocking
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced" nonblocking
EMU_NUM_DEVICES=3 EMU_NO_PEER=all also_expected='hetcoll: some GPUs of this node' \
    case_ 3 ob1 "$forced" nonblocking

case_ 2 ob1 "$forced" threads
case_ 4 ob1 "$forced" threads
case_ 3 ucx "$forced" threads
case_ 2 ob1 "$forced" threads many
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced" threads many
case_ 2 ob1 "$forced --mca coll_hetcoll_progress_thread 1" threads many

end_cases
