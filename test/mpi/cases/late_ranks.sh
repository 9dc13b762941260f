#!/bin/bash
# late_ranks.sh: shares of the vector by the rate of links, and ranks that come late.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

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
also_expected="$also_expected|coll_hetcoll_skew of rank 1 is not that of rank 0" other_algorithm=any case_ 3 ob1 "$(with weighted)" late_ranks differ
message=
also_expected="$also_expected|hetcoll: (MPI_(Allreduce|Iallreduce|Allreduce_init) failed|a buffer of rank [0-9], )"
EMU_DELAY_US=150000 EMU_NUM_DEVICES=4 case_ 4 ob1 "$late" late_ranks unmapped 0
EMU_NUM_DEVICES=4 case_ 4 ob1 "$late" late_ranks launch 3

end_cases
