#!/bin/bash
# faults.sh: driver calls that fail, and memory that cannot be mapped: an error or the right result.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# Every failure has a message of hetcoll's; thousands of them, so mpirun tears some lines.
also_expected='.'
# Some 1,700 faults, one after the other.
case_ 2 ob1 "$forced" faults
case_ 4 ob1 "$forced" faults
case_ 3 ucx "$forced" faults
# A sample of make check-faults.
case_ 3 ob1 "$(with two_shot)" faults random 1 40
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with ring)" faults random 2 40
nodes_ 0,1,1 ob1 "$(with hierarchical)" faults random 3 40
case_ 3 ob1 "$forced" staged_collectives random 4 40
case_ 1 ob1 "$forced" nonblocking_faults every
case_ 3 ob1 "$forced" nonblocking_faults every
case_ 2 ob1 "$forced --mca coll_hetcoll_fixed_point 8" nonblocking_faults every
also_expected=
also_expected='hetcoll: MPI_(Iallreduce|Allreduce_init) failed|hetcoll: a rank cannot'
for algorithm in ring two_shot one_shot; do
    EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with $algorithm)" nonblocking_faults launch
done
case_ 2 ob1 "$(with ring) --mca coll_hetcoll_progress_thread 1" nonblocking_faults launch
case_ 2 ucx "$(with ring) --mca coll_hetcoll_ipc never" nonblocking_faults launch
case_ 4 ob1 "$(with ring)" nonblocking_faults launch
also_expected=

# Memory that one rank cannot map, from the first trial on, once, or from then on: right results, one message
# for each.
message='hetcoll: some GPUs of this node do not share memory'
EMU_FAIL="cuIpcOpenMemHandle:*:999" EMU_FAIL_RANK=1 EMU_NUM_DEVICES=3 case_ 3 ob1 "$forced" mapping_faults trial
EMU_FAIL=cuIpcOpenMemHandle:2:999 EMU_FAIL_RANK=0 case_ 4 ucx "$forced" mapping_faults trial
message='hetcoll: a buffer of rank [0-9], in [0-9]* bytes of device memory at 0x[0-9a-f]*, cannot be mapped'
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" mapping_faults later 1
case_ 3 ob1 "$(with leader)" mapping_faults later 0
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" mapping_faults later 2
also_expected=$message message='hetcoll: memory of another GPU cannot be mapped'
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" mapping_faults never 1
case_ 3 ob1 "$(with leader)" mapping_faults never 0
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" mapping_faults never 2
also_expected='' message=
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

# Little room for what the ranks of a node share: right results, and at most one message. Open MPI has its own
# elsewhere, but where a program has many communicators in a container's 64 MiB. The emulated GPU takes 545 KB.
if unshare --mount true 2>/dev/null; then
    elsewhere="$forced --mca btl_vader_backing_directory /tmp"
    launcher="$here/small_shm.sh 600k"
    case_ 4 ob1 "$elsewhere" mapping_faults trial
    launcher="$here/small_shm.sh 1500k"
    message='hetcoll: ranks of a node .* on communicator'
    also_expected='hetcoll: (version|communicator of)'
    case_ 4 ob1 "$elsewhere --mca coll_hetcoll_verbose 1" small_shm 20
    launcher="$here/small_shm.sh 1000k"
    message='hetcoll: ranks of a node sum vectors of more than 1024 bytes piece by piece on communicator'
    case_ 4 ob1 "$elsewhere --mca coll_hetcoll_verbose 1" small_shm 1
    also_expected='' message=''
    launcher="$here/small_shm.sh 64m"
    case_ 4 ob1 "$forced" small_shm 1000 16
    launcher=''
else
    skip_ 'a small /dev/shm: unshare does not work here'
fi

end_cases
