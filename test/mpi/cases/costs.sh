#!/bin/bash
# costs.sh: what calls cost: bytes, kernels, driver calls.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# The costs of calls.
case_ 2 ob1 "$(with leader)" counts leader leader
case_ 5 ob1 "$(with leader)" counts leader leader
for ranks in 2 4 7; do
    EMU_NUM_DEVICES=$ranks case_ $ranks ob1 "$(with two_shot)" counts two_shot two_shot
done
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with two_shot)" counts halves two_shot
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with ring)" counts halves ring
EMU_LINKS=$machines/dgx1v.topology:0,1,2,4 case_ 4 ob1 "$(with tree)" counts halves tree
for algorithm in host leader copy_in; do
    case_ 3 ob1 "$(with $algorithm)" counts driver_calls $algorithm
done
EMU_NUM_DEVICES=2 case_ 2 ob1 "$(with copy_in)" counts driver_calls copy_in

case_ 2 ob1 "$forced" steady_state
case_ 3 ob1 "$forced" steady_state
case_ 4 ucx "$forced" steady_state
for algorithm in host two_shot one_shot copy_in ring; do
    EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with $algorithm)" steady_state
done
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" steady_state
EMU_LINKS=$machines/dgx1v.topology:0,1,4 case_ 3 ob1 "$(with tree)" steady_state
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,1 ob1 "$(with hierarchical)" steady_state

end_cases
