#!/bin/bash
# reproducible.sh: sums in the order of the ranks, whatever else is asked for.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

same="$forced --mca coll_hetcoll_reproducible 1"
case_ 2 ob1 "$same" reproducible
case_ 3 ucx "$same" reproducible
EMU_NUM_DEVICES=4 case_ 4 ob1 "$same" reproducible
case_ 7 ob1 "$same --mca coll_hetcoll_adapt_chunk 1" reproducible
EMU_NUM_DEVICES=3 case_ 3 ob1 "$same --mca coll_hetcoll_ipc never --mca coll_hetcoll_chunk_bytes 4096" \
    reproducible
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
other_algorithm=ordered case_ 4 ob1 "$same --mca coll_hetcoll_algorithm ring" reproducible
message='hetcoll: coll_hetcoll_shares and coll_hetcoll_skew do nothing while'
EMU_NUM_DEVICES=4 case_ 4 ob1 "$same --mca coll_hetcoll_skew 1 --mca coll_hetcoll_shares 1,2,3,4" reproducible
message=
EMU_NUM_DEVICES=5 case_ 5 ob1 "$same --mca coll_hetcoll_algorithm one_shot" reproducible
other_algorithm=ordered nodes_ 0,1,1 ob1 "$same --mca coll_hetcoll_algorithm hierarchical" reproducible
also_expected=
also_expected='coll_hetcoll_reproducible of rank 1 is not that of rank 0' nodes_ 0,1,1 ob1 "$forced" reproducible one
case_ 4 ob1 "$forced" reproducible key
nodes_ 0,1,1 ob1 "$forced" reproducible key
also_expected='to different values while the program ran, so hetcoll chooses there, in the order of the ranks'
case_ 3 ob1 "$forced" reproducible some_keys
also_expected=
nodes_ 0,1 ob1 "$same" reproducible
nodes_ 0,1,0,1 ucx "$same" reproducible
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,2 ob1 "$same" reproducible
EMU_NUM_DEVICES=3 nodes_ 0,0,0,1,1,1,1 ob1 "$same" reproducible
nodes_ 0,0,1,1,2,2 ucx "$same" reproducible
nodes_ 2,1,0,0,1,2,0 ob1 "$same" reproducible
# Ranks that round another way, flush subnormal numbers, or trap: as a rank alone, and all of them.
export OMPI_MCA_coll_hetcoll_reproducible=1
for mode in flush up down zero traps; do
    nodes_ 0,0,1 ob1 "$forced" float_control $mode 1
    case_ 3 ob1 "$forced" float_control $mode all
done
unset OMPI_MCA_coll_hetcoll_reproducible
for mode in flush up traps; do
    EMU_NUM_DEVICES=4 case_ 4 ob1 "$forced" float_control $mode 2
    nodes_ 0,0,1,1 ob1 "$forced --mca coll_hetcoll_ipc never" float_control $mode all
    case_ 2 ob1 "$(with ring)" float_control $mode 0
done
also_expected='hetcoll: a rank cannot use its GPU'
case_ 3 ob1 "$same" reproducible staged
nodes_ 0,1,1,0 ob1 "$same" reproducible staged
also_expected=

end_cases
