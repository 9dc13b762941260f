#!/bin/bash
# collectives.sh: other collectives: hetcoll's own schedules, and those that are staged.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

for ranks in 1 2 3 5; do
    case_ $ranks ob1 "$forced" own_collectives
done
case_ 4 ucx "$forced" own_collectives
EMU_NUM_DEVICES=4 case_ 4 ob1 "$forced" own_collectives
EMU_NUM_DEVICES=3 EMU_DELAY_US=30 case_ 3 ob1 "$forced" own_collectives
EMU_LINKS=$machines/dgx1v.topology:0,1,4 case_ 3 ob1 "$forced" own_collectives
case_ 3 ob1 "$forced --mca coll_hetcoll_ipc never" own_collectives
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced" own_collectives

# Bytes that a datatype does not name are not touched.
for ranks in 2 3; do
    case_ $ranks ob1 "$forced" guards holes
    case_ $ranks ob1 "$forced" guards disturbed
    case_ $ranks ob1 "$forced" guards pairs
    case_ $ranks ob1 "$forced" guards disturbed_pairs
done
case_ 3 ob1 "$(with ring)" guards pairs
case_ 3 ob1 "$forced --mca coll_hetcoll_reproducible 1" guards pairs
case_ 2 ob1 "$forced --mca coll_hetcoll_stage_pinned 4K" guards holes

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
also_expected='hetcoll: (MPI_[A-Za-z_]* failed(,| on this rank)|stages through pageable memory)'
case_ 1 ob1 "$forced" staged_collectives faults
case_ 3 ob1 "$forced" staged_collectives faults
# The data that other ranks get are lost, and the ranks do not meet.
must_fail='hetcoll ends the job: rank 2 of a communicator of 3 cannot copy its data for'
for call in Allgather Alltoall; do
    for how in blocking nonblocking persistent; do
        case_ 3 ob1 "$forced" staged_collectives lost $call $how
    done
done
case_ 3 ucx "$forced" staged_collectives lost Allgather blocking
must_fail='' also_expected=''

end_cases
