#!/bin/bash
# aborts.sh: failures end the job, none hangs.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

for ranks in 2 4; do
    for pml in ob1 ucx; do
        must_fail='MPI_ERR_TRUNCATE|show_help.c' # in whose place Open MPI 4.1.4 may lose its own words
        nodes=$(seq -s , "$ranks") # so that there are messages
        nodes_ "$nodes" $pml "$forced --mca coll_hetcoll_check off" aborts small_message
        # By one algorithm, whatever each rank takes the size for.
        nodes_ "$nodes" $pml "$(with ring) --mca coll_hetcoll_check off" aborts large_message
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

end_cases
