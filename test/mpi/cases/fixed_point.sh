#!/bin/bash
# fixed_point.sh: sums of floats as fixed-point numbers, by every algorithm: the same bits.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

case_ 1 ob1 "$forced" fixed_point
case_ 4 ob1 "$forced" fixed_point
case_ 3 ucx "$forced" fixed_point
EMU_NUM_DEVICES=4 case_ 4 ob1 "$forced" fixed_point
also_expected='hetcoll: coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of'
for algorithm in recursive_doubling rabenseifner ring one_shot two_shot leader hierarchical host copy_in ordered; do
    case_ 3 ob1 "$(with $algorithm)" fixed_point
done
EMU_LINKS=$machines/dgx1v.topology:0,3,4 case_ 3 ob1 "$(with tree)" fixed_point
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with weighted) --mca coll_hetcoll_shares 1,2,1" fixed_point
also_expected=
nodes_ 0,0,1,1,2 ob1 "$forced" fixed_point
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$(with hierarchical)" fixed_point
case_ 3 ob1 "$forced --mca coll_hetcoll_reproducible 1" fixed_point
also_expected='hetcoll: a rank (cannot use its GPU|converts to fixed point on the host)'
case_ 3 ob1 "$forced" fixed_point staged
also_expected='hetcoll: MPI_(Allreduce|Iallreduce|Allreduce_init) failed, the receive buffer is undefined: an element of some rank is no'
case_ 1 ob1 "$forced" fixed_point range
case_ 3 ob1 "$forced" fixed_point range
also_expected=
message='an element of some rank is no number or beyond \+-10922.7, the largest that 3 ranks can add with coll_hetcoll_fixed_point 16: scale' \
    case_ 3 ob1 "$forced" fixed_point once
message='hetcoll adds floats as usual: the ranks of this communicator have different coll_hetcoll_fixed_point' \
    case_ 3 ob1 "$forced" fixed_point differ

end_cases
