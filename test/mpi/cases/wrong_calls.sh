#!/bin/bash
# wrong_calls.sh: how each of 29 wrong calls ends, and calls that only look wrong.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

soon="$forced --mca coll_hetcoll_report_after 2"
both='hetcoll: the ranks of communicator [0-9]+ (do not call the same|are not in the same call): rank [0-9] .*MPI_.*, rank [0-9] .*MPI_'

# All ranks return the error, one of them says so, and the next call is right.
message=$both
for name in allreduce_count allreduce_small_large allreduce_type allreduce_op iallreduce_count persistent_count \
    persistent_allreduce large_bcast_allreduce large_bcast_root large_reduce_root large_reduce_op \
    large_reduce_scatter_count; do
    case_ 2 ob1 "$soon" wrong_calls $name
    case_ 3 ob1 "$soon" wrong_calls $name
done
message=

# A rank may be in Open MPI's part of its call: the error of another ends the job, with a line of both calls.
must_fail=$both
for name in allreduce_nothing bcast_allreduce bcast_allreduce_device barrier_allreduce barrier_before barrier_iallreduce \
    barrier_bcast bcast_count bcast_small_large bcast_root reduce_root reduce_op scan_exscan reduce_scatter_counts \
    allgatherv_counts; do
    case_ 2 ob1 "$soon" wrong_calls $name
    case_ 3 ob1 "$soon" wrong_calls $name
done
case_ 4 ucx "$soon" wrong_calls barrier_bcast
nodes_ 0,1,1 ob1 "$soon" wrong_calls barrier_allreduce

# Where errors are returned the others wait in Open MPI's part of it forever. They see which call the rank has made.
at_once="$forced --mca coll_hetcoll_report_after 1"
must_fail='hetcoll: rank [01] waits for [0-9]+ s in MPI_Barrier on communicator [0-9]+, which Open MPI serves: rank [12] \(process [0-9]+ [a-z]+\) has called MPI_Bcast of 8 bytes, root 0, in its place; [12] of [23] ranks of this node have come'
case_ 2 ob1 "$at_once" wrong_calls barrier_bcast return
case_ 3 ob1 "$at_once" wrong_calls barrier_bcast return

# Ranks wait, and say for whom, after which the program ends.
must_fail='hetcoll: rank 0 waits for [0-9]+ s in call number 3 on communicator [0-9]+, MPI_Allreduce of 2 int32 \(8 bytes\), sum: missing rank 1 \(process [0-9]+ [a-z]+, last in call 2, '
case_ 2 ob1 "$soon" wrong_calls communicator
case_ 2 ob1 "$soon" wrong_calls missing
must_fail=

for ranks in 2 3 4; do
    case_ "$ranks" ob1 "$forced" wrong_calls right
done
nodes_ 0,0,1,1 ob1 "$forced" wrong_calls right

# Nor is it wrong that some ranks have nothing to send or to receive.
for ranks in 2 3 4; do
    case_ "$ranks" ob1 "$forced" zero_counts
done
case_ 3 ucx "$forced" zero_counts
nodes_ 0,0,1,1 ob1 "$forced" zero_counts

end_cases
